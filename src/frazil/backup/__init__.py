"""backup: a data folder as it is now, while a node uses it; and back.

    create.py     create_backup: log, tables and all other files that are not derived
    restore.py    restore_backup: verify a backup and make a data folder of it
    manifest.py   BackupManifest: what a backup holds

On disk:

    <backup>/backup.json    the manifest; written last
    <backup>/data/          a data folder without what is derived
"""

from frazil.backup.create import CreatedBackup, create_backup
from frazil.backup.manifest import BackupManifest, read_manifest
from frazil.backup.restore import restore_backup, verify_backup

__all__ = [
    "BackupManifest",
    "CreatedBackup",
    "create_backup",
    "read_manifest",
    "restore_backup",
    "verify_backup",
]
