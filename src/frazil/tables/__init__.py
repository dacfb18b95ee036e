"""tables"""
__all__ = []
