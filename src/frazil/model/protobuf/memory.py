"""What compiled code needs to touch memory: raw reads and writes, and the decorators.

An address is an int64, and so is whatever is read: numba makes a float of an int64 and a uint64
together. Who takes the address of an array keeps the array. Nothing here checks bounds: whoever
calls has compared with an end before, or reads and writes at most `SLACK_BYTES` behind one, where
every piece of memory that is used here has room.

numba makes its copy on disk anew when the file of the function changes. Ours are compiled from
several files, so theirs are looked at as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core.caching import FunctionCache
from numba.extending import intrinsic
from numpy.typing import NDArray

BLOCK_BYTES = 64
"""Text is looked at in blocks of as many bytes as a number has bits."""
COPY_BYTES = 32
"""Text is copied in blocks of this size, the last one as well."""
SLACK_BYTES = 64
"""So much may be read or written behind the end of text. Nobody looks at it."""

SIGN = -(2**63)

Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Words = NDArray[np.int64]
Offsets = NDArray[np.int32]
Function = TypeVar("Function", bound=Callable[..., Any])

SOURCES = hashlib.sha256(
    b"".join(path.read_bytes() for path in sorted(Path(__file__).parents[1].rglob("*.py")))
).hexdigest()


class _Cache(FunctionCache):
    """Knows a compiled function by all of the sources."""

    def _index_key(self, signature: object, codegen: object) -> tuple[object, ...]:
        return (*super()._index_key(signature, codegen), SOURCES)  # type: ignore[no-untyped-call]


def compiled(function: Function) -> Function:
    """Compile at the first call, and keep the result on disk for the next process."""
    dispatcher: Any = numba.njit(nogil=True)(function)
    # numba may find no folder to write to; then every process compiles for itself.
    with suppress(RuntimeError):
        dispatcher._cache = _Cache(function)  # type: ignore[no-untyped-call]  # noqa: SLF001
    return cast(Function, dispatcher)


def part(function: Function) -> Function:
    """Compile together with what calls it."""
    return cast(Function, numba.njit(nogil=True)(function))


def inlined(function: Function) -> Function:
    """The same, for what runs for every field."""
    return cast(Function, numba.njit(nogil=True, forceinline=True)(function))


INT64 = ir.IntType(64)
INT128 = ir.IntType(128)


def _reader(bits: int) -> Callable[[int], int]:
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
        wide_high, wide_low, wide_factor = (builder.zext(each, INT128) for each in arguments)
        shift = ir.Constant(INT128, 64)
        carried = builder.lshr(builder.mul(wide_low, wide_factor), shift)
        product = builder.add(builder.mul(wide_high, wide_factor), carried)
        top = builder.trunc(builder.lshr(product, shift), INT64)
        rest = builder.trunc(product, INT64)
        is_inexact = builder.icmp_unsigned(">", rest, ir.Constant(INT64, 1))
        return builder.or_(top, builder.zext(is_inexact, INT64))

    return types.int64(types.int64, types.int64, types.int64), generate


byte_at = _reader(8)
word_at = _reader(64)
put_byte = _writer(8)
put_half = _writer(16)
put_word = _writer(64)
get = cast(Callable[[int, int], int], intrinsic(_get))
"""A word of an array, by the address of the array: numba counts references to arrays that are
passed on, which takes longer than what is done with them here."""
put = cast(Callable[[int, int, int], None], intrinsic(_put))
high_bits = cast(Callable[[int], int], intrinsic(_high_bits))
"""The top bits of the block at an address, as one number: 0 when all of it is ASCII."""
copy_block = cast(Callable[[int, int], None], intrinsic(_copy_block))
swapped = cast(Callable[[int], int], intrinsic(_swapped))
"""The same bytes in the other order, so that the first one counts most."""
high_product_odd = cast(Callable[[int, int, int], int], intrinsic(_high_product_odd))
"""The top 64 bits of a product of 128 and 64 bits, with the lowest one set when others follow."""


@inlined
def address_of(array: NDArray[Any]) -> int:
    """Where the items of an array begin."""
    return np.int64(array.ctypes.data)  # type: ignore[return-value]


@inlined
def copy(target: int, source: int, length: int) -> None:
    """Copy text, and what is behind it up to a full block."""
    copy_block(target, source)
    at = COPY_BYTES
    while at < length:
        copy_block(target + at, source + at)
        at += COPY_BYTES


@inlined
def compare(one: int, one_length: int, other: int, other_length: int) -> int:
    """Below, at or above 0, as one text comes before, equals or comes behind another, by bytes."""
    shared = min(one_length, other_length)
    at = 0
    while at < shared:
        # The first byte counts most, and bytes are unsigned.
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
    """Are two texts of this length the same?"""
    at = 0
    while at + 8 <= length:
        if word_at(one + at) != word_at(other + at):
            return False
        at += 8
    rest = length - at
    return rest == 0 or (word_at(one + at) ^ word_at(other + at)) << 8 * (8 - rest) == 0
