"""tables/keys: from a key to the number of its row version.

key_block.py   KeyBlock: the canonical keys of a batch, as memory that compiled code reads
kernels.py     compiled loops: hash, look up, insert, remove
key_index.py   KeyIndex: slots of 8 bytes in shards that grow one by one
index_file.py  the index of a partition as a file
"""
