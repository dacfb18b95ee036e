"""Lines of files as records.

files_source.py  FILES: the type `files`, and its source
local_files.py   FileFolder, LocalFile: the files of a folder, while others write them
"""
