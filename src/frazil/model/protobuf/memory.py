"""Raw memory access for compiled code, and the compile decorators.

Addresses and the values read are int64: numba converts an int64 combined with a uint64 to float.
The caller keeps the array whose address it uses. Nothing here checks bounds: the caller has
compared with an end before, or accesses at most `SLACK_BYTES` after one, where all memory used here
has room.

numba invalidates its disk cache when the file of a function changes. Our functions are compiled
from several files, so the key includes all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    InTreeCacheLocator,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
)
from numba.extending import intrinsic
from numpy.typing import NDArray

BLOCK_BYTES = 64
"""Text is scanned in blocks of as many bytes as an integer has bits."""
COPY_BYTES = 32
"""Text is copied in blocks of this size, including the last one."""
SLACK_BYTES = 64
"""Bytes after the end of a text that may be read or written; their content is ignored."""

SIGN = -(2**63)

Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Words = NDArray[np.int64]
Offsets = NDArray[np.int32]
Function = TypeVar("Function", bound=Callable[..., Any])

MODEL = Path(__file__).parents[1]


@lru_cache
def _sources_hash(folder: Path) -> str:
    sources = (path.read_bytes() for path in sorted(folder.rglob("*.py")))
    return hashlib.sha256(b"".join(sources)).hexdigest()


class _ReadOnly:
    """A cache folder that cannot be written, as in a container image. numba uses none such."""

    def ensure_cache_path(self) -> None:
        folder = Path(self.get_cache_path())  # type: ignore[attr-defined]
        if not any(folder.glob("*.nbi")):
            raise FileNotFoundError(folder)


class _ReadOnlyGiven(_ReadOnly, UserProvidedCacheLocator):
    """The folder of NUMBA_CACHE_DIR."""


class _ReadOnlyInTree(_ReadOnly, InTreeCacheLocator):
    """The folder beside the source."""


class _ReadOnlyUserWide(_ReadOnly, UserWideCacheLocator):
    """The folder of this user."""


class _CacheFiles(CompileResultCacheImpl):
    """Cached functions in the first folder that can be written, else in one that can be read."""

    _locator_classes = [  # noqa: RUF012
        *CompileResultCacheImpl._locator_classes,  # noqa: SLF001
        *(_ReadOnlyGiven, _ReadOnlyInTree, _ReadOnlyUserWide),
    ]


class _Cache(FunctionCache):
    """Disk cache whose key includes the sources a function may be compiled from: all of `model`,
    and its own folder."""

    _impl_class = _CacheFiles

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        folder = Path(function.__code__.co_filename).parent
        own = () if folder.is_relative_to(MODEL) else (_sources_hash(folder),)
        self._sources = (_sources_hash(MODEL), *own)

    def _index_key(self, signature: object, codegen: object) -> tuple[object, ...]:
        key = super()._index_key(signature, codegen)  # type: ignore[no-untyped-call]
        return (*key, *self._sources)

    def save_overload(self, signature: object, data: object) -> None:
        with suppress(OSError):  # read-only, or full: this process has what it compiled
            super().save_overload(signature, data)  # type: ignore[no-untyped-call]


def compiled(function: Function) -> Function:
    """Compile at the first call, and cache the result on disk."""
    dispatcher: Any = numba.njit(nogil=True)(function)
    # Without a writable cache folder every process compiles for itself.
    with suppress(RuntimeError):
        dispatcher._cache = _Cache(function)  # noqa: SLF001
    return cast(Function, dispatcher)


def part(function: Function) -> Function:
    """Compile together with the caller."""
    return cast(Function, numba.njit(nogil=True)(function))


def inlined(function: Function) -> Function:
    """Compile inlined into the caller, for code that runs per field."""
    return cast(Function, numba.njit(nogil=True, forceinline=True)(function))


INT64 = ir.IntType(64)
INT128 = ir.IntType(128)


def reader_of(bits: int) -> Callable[[int], int]:
    def read(typing: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            value = builder.load(pointer, align=1)
            return value if bits == 64 else builder.zext(value, INT64)

        return types.int64(types.int64), generate

    return cast(Callable[[int], int], intrinsic(read))


def _writer(bits: int) -> Callable[[int, int], None]:
    def write(typing: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            number = arguments[1]
            if bits < 64:
                number = builder.trunc(number, ir.IntType(bits))
            builder.store(number, pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return cast(Callable[[int, int], None], intrinsic(write))


def _pointer(builder: Any, words: Any, index: Any) -> Any:
    return builder.gep(builder.inttoptr(words, INT64.as_pointer()), [index])


def _get(typing: Any, words: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(builder, *arguments), align=8)

    return types.int64(types.int64, types.int64), generate


def _put(typing: Any, words: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        words, index, value = arguments
        builder.store(value, _pointer(builder, words, index), align=8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _high_bits(typing: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = ir.VectorType(ir.IntType(8), BLOCK_BYTES)
        block = builder.load(builder.inttoptr(arguments[0], vector.as_pointer()), align=1)
        return builder.bitcast(builder.icmp_signed("<", block, ir.Constant(vector, None)), INT64)

    return types.int64(types.int64), generate


def _copy_block(typing: Any, target: Any, source: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = ir.VectorType(ir.IntType(8), COPY_BYTES).as_pointer()
        block = builder.load(builder.inttoptr(arguments[1], pointer), align=1)
        builder.store(block, builder.inttoptr(arguments[0], pointer), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def _swapped(typing: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bswap(arguments[0])

    return types.int64(types.int64), generate


def _high_product_odd(typing: Any, high: Any, low: Any, factor: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide_high, wide_low, wide_factor = (builder.zext(value, INT128) for value in arguments)
        shift = ir.Constant(INT128, 64)
        carried = builder.lshr(builder.mul(wide_low, wide_factor), shift)
        product = builder.add(builder.mul(wide_high, wide_factor), carried)
        top = builder.trunc(builder.lshr(product, shift), INT64)
        rest = builder.trunc(product, INT64)
        is_inexact = builder.icmp_unsigned(">", rest, ir.Constant(INT64, 1))
        return builder.or_(top, builder.zext(is_inexact, INT64))

    return types.int64(types.int64, types.int64, types.int64), generate


byte_at = reader_of(8)
word_at = reader_of(64)
put_byte = _writer(8)
put_half = _writer(16)
put_word = _writer(64)
get = cast(Callable[[int, int], int], intrinsic(_get))
"""A word of an array, by address: numba would count references to passed arrays, which takes
longer than the access."""
put = cast(Callable[[int, int, int], None], intrinsic(_put))
high_bits = cast(Callable[[int], int], intrinsic(_high_bits))
"""The top bit of each byte of the block at an address, as one integer: 0 if all of it is ASCII."""
copy_block = cast(Callable[[int, int], None], intrinsic(_copy_block))
swapped = cast(Callable[[int], int], intrinsic(_swapped))
"""The value with its bytes reversed, so that the first byte is the most significant."""
high_product_odd = cast(Callable[[int, int, int], int], intrinsic(_high_product_odd))
"""The top 64 bits of a product of 128 and 64 bits; the lowest bit is set if lower bits follow."""


@inlined
def address_of(array: NDArray[Any]) -> int:
    """Return the address of the first item of an array."""
    return np.int64(array.ctypes.data)  # type: ignore[return-value]


@inlined
def copy(target: int, source: int, length: int) -> None:
    """Copy text in whole blocks, which may copy bytes after its end."""
    copy_block(target, source)
    at = COPY_BYTES
    while at < length:
        copy_block(target + at, source + at)
        at += COPY_BYTES


@inlined
def compare(one: int, one_length: int, other: int, other_length: int) -> int:
    """Compare two texts by bytes: below, equal to or above 0."""
    shared = min(one_length, other_length)
    at = 0
    while at < shared:
        # The first byte is the most significant; bytes are unsigned.
        mine = swapped(word_at(one + at)) ^ SIGN
        theirs = swapped(word_at(other + at)) ^ SIGN
        if mine != theirs:
            behind = 8 * max(0, at + 8 - shared)
            mine, theirs = mine >> behind, theirs >> behind
            if mine != theirs:
                return -1 if mine < theirs else 1
        at += 8
    return one_length - other_length


@inlined
def is_same(one: int, other: int, length: int) -> bool:
    """Return whether two texts of this length are equal."""
    at = 0
    while at + 8 <= length:
        if word_at(one + at) != word_at(other + at):
            return False
        at += 8
    rest = length - at
    return rest == 0 or (word_at(one + at) ^ word_at(other + at)) << 8 * (8 - rest) == 0
