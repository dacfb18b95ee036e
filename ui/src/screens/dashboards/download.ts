/** Save a text as a file. */
export function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // Revoke the URL after the browser has started the download.
  setTimeout(() => URL.revokeObjectURL(url));
}
