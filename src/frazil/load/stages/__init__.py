"""load/stages: folders, buckets and web servers that files are loaded from.

stage.py         Stage: a place below a root, with its connection and file format
location.py      StageLocation: the URL of a stage, checked
staged_file.py   StagedFile: a file as it was listed
local_folder.py  LocalFolder: a local folder; follows no links
bucket.py        Bucket: S3, Google Cloud Storage, Azure
web_server.py    WebServer: a web server; follows no redirects
"""
