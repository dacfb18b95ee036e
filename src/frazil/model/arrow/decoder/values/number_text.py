"""Format numbers, with the same text for the same number everywhere.

A double has the fewest digits that identify it, formatted as in ECMAScript: 1.5, 100000, 1e+21,
1e-7, NaN, Infinity; but -0, so that nothing is lost. The digits follow R. Giulietti's "The
Schubfach way to render doubles": the interval that rounds to the double is scaled by a power of
ten, so that at most two integers in it are candidates; one digit less is tried first.

Writers take the address to write at and return the address after the text.
"""

from __future__ import annotations

import numpy as np

from frazil.model.protobuf.memory import copy, high_product_odd, inlined, part, put_byte, put_half

MINUS, POINT, ZERO, LETTER_E, PLUS = b"-.0e+"
FRACTION_BITS = 52
FRACTION_MASK = (1 << FRACTION_BITS) - 1
EXPONENT_MAX = 2047
EXPONENT_BIAS = 1023 + FRACTION_BITS
INT64_MIN = -(2**63)
DIGITS_MAX = 17
POWER_MIN, POWER_MAX = -292, 324
"""Powers of ten that doubles need."""
PLAIN_MIN, PLAIN_MAX = -6, 21
"""A number whose decimal point is within these positions has no exponent."""
SCRATCH = 40
"""Digits are first written this far after the text, where nothing is yet."""


def _powers() -> tuple[np.ndarray, np.ndarray]:
    """Return the 128 leading bits of each power of ten, rounded up, as two words."""
    powers = []
    for exponent in range(POWER_MIN, POWER_MAX + 1):
        shift = 127 - (exponent * 1741647 >> 19)
        numerator, denominator = 10 ** max(exponent, 0), 10 ** max(-exponent, 0)
        numerator, denominator = numerator << max(shift, 0), denominator << max(-shift, 0)
        powers.append(-(-numerator // denominator))
    high = np.array([power >> 64 for power in powers], np.uint64)
    low = np.array([power & 2**64 - 1 for power in powers], np.uint64)
    return high.view(np.int64), low.view(np.int64)


POWERS_HIGH, POWERS_LOW = _powers()
PAIRS = np.frombuffer("".join(f"{pair:02}" for pair in range(100)).encode(), np.uint16).copy()
"""Two digits at once."""
TENS = np.array([10**power for power in range(19)], np.int64)
WORDS = np.zeros((3, 32), np.uint8)
for _index, _word in enumerate((b"NaN", b"Infinity", b"-Infinity")):
    WORDS[_index, : len(_word)] = np.frombuffer(_word, np.uint8)


@part
def write_integer(number: int, at: int) -> int:
    """-42"""
    if number < 0:
        put_byte(at, MINUS)
        at += 1
        if number == INT64_MIN:
            # It has no positive counterpart: write its first digit separately.
            put_byte(at, ZERO + 9)
            at += 1
            number += 9 * 10**18
        number = -number
    return _write_digits(number, at, _digit_count(number))


@inlined
def _digit_count(number: int) -> int:
    count = 1
    while count < TENS.size and number >= TENS[count]:
        count += 1
    return count


@inlined
def _write_digits(number: int, at: int, count: int) -> int:
    end = place = at + count
    while number >= 100:
        place -= 2
        rest = number // 100
        put_half(place, PAIRS[number - rest * 100])
        number = rest
    if number >= 10:
        put_half(place - 2, PAIRS[number])
    else:
        put_byte(place - 1, ZERO + number)
    return end


@part
def write_double(bits: int, at: int) -> int:
    """-1.5"""
    if is_special(bits):
        return _write_special(bits, at)
    if bits < 0:
        put_byte(at, MINUS)
        at += 1
        bits &= ~INT64_MIN
    if bits == 0:
        put_byte(at, ZERO)
        return at + 1
    number, exponent = _shortest(bits)
    while number % 10 == 0:
        number //= 10
        exponent += 1
    count = _digit_count(number)
    digits = at + SCRATCH
    _write_digits(number, digits, count)
    return _format(digits, count, count + exponent, at)


@inlined
def is_special(bits: int) -> bool:
    """Return whether it is NaN or an infinity."""
    return bits >> FRACTION_BITS & EXPONENT_MAX == EXPONENT_MAX


@inlined
def _write_special(bits: int, at: int) -> int:
    word, length = 0, 3
    if bits & FRACTION_MASK == 0:
        word, length = (2, 9) if bits < 0 else (1, 8)
    for index in range(length):
        put_byte(at + index, WORDS[word, index])
    return at + length


@inlined
def _format(digits: int, count: int, point: int, at: int) -> int:
    """Place the decimal point after `point` digits, or write an exponent."""
    if PLAIN_MIN < point <= 0:
        put_half(at, ZERO | POINT << 8)
        at += 2
        for _ in range(-point):
            put_byte(at, ZERO)
            at += 1
        copy(at, digits, count)
        return at + count
    if count <= point <= PLAIN_MAX:
        copy(at, digits, count)
        for place in range(at + count, at + point):
            put_byte(place, ZERO)
        return at + point
    whole = point if 0 < point <= PLAIN_MAX else 1
    copy(at, digits, whole)
    at += whole
    if count > whole:
        put_byte(at, POINT)
        copy(at + 1, digits + whole, count - whole)
        at += 1 + count - whole
    if whole == point:
        return at
    exponent = point - 1
    put_half(at, LETTER_E | (MINUS if exponent < 0 else PLUS) << 8)
    exponent = abs(exponent)
    return _write_digits(exponent, at + 2, _digit_count(exponent))


@inlined
def _shortest(bits: int) -> tuple[int, int]:
    """Return the shortest decimal of a positive double, or the nearest of the shortest: an
    integer and a power of ten."""
    fraction = bits & FRACTION_MASK
    biased = bits >> FRACTION_BITS
    if biased == 0:
        significand, power = fraction, 1 - EXPONENT_BIAS
    else:
        significand, power = fraction | 1 << FRACTION_BITS, biased - EXPONENT_BIAS
        if -FRACTION_BITS <= power <= 0 and significand & ((1 << -power) - 1) == 0:
            return significand >> -power, 0
    # Below a power of two, doubles are twice as dense.
    is_uneven = fraction == 0 and biased > 1
    decimal = power * 1262611 - (524031 if is_uneven else 0) >> 22
    shift = power + (-decimal * 1741647 >> 19) + 1
    high, low = POWERS_HIGH[-decimal - POWER_MIN], POWERS_LOW[-decimal - POWER_MIN]
    # Scaled by four, to tell halves and quarters apart.
    middle = high_product_odd(high, low, 4 * significand << shift)
    lower = high_product_odd(high, low, 4 * significand - (1 if is_uneven else 2) << shift)
    upper = high_product_odd(high, low, 4 * significand + 2 << shift)
    # The bounds belong to the double if it is even.
    lower += significand & 1
    upper -= significand & 1
    down = middle // 4
    if down >= 10:
        shorter = down // 10
        is_down, is_up = lower <= 40 * shorter, 40 * shorter + 40 <= upper
        if is_down != is_up:
            return shorter + (1 if is_up else 0), decimal + 1
    is_down, is_up = lower <= 4 * down, 4 * down + 4 <= upper
    if is_down == is_up:
        half = 4 * down + 2
        is_up = middle > half or (middle == half and down & 1 == 1)
    return down + (1 if is_up else 0), decimal
