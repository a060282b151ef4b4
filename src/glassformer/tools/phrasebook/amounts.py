"""The phrasebook's amounts of money: ``$1,234.50`` and ``1,234.50 US dollars``."""

from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from random import Random
from typing import Literal

from glassformer.tools.phrasebook.forms import Clues, Form, Locale, Value, Years

__all__ = ["AMOUNT_FORMS"]

# In every locale of the CLDR, all ten currencies have different symbols and names.
CURRENCIES = ("USD", "EUR", "GBP", "JPY", "CHF", "INR", "CAD", "AUD", "SEK", "PLN")
_LONE_UNIT = 0.15  # share of amounts below 2, so that the singular is not rare


def _draw(rng: Random, _: Years) -> Value:
    """A currency, and an amount of 1 to 4 digits; all lengths are equally likely."""
    code = rng.choice(CURRENCIES)
    whole = 1 if rng.random() < _LONE_UNIT else rng.randrange(1, 10 ** rng.randint(1, 4))
    return code, Decimal(whole) + (0 if code == "JPY" else Decimal(rng.randrange(100)) / 100)


def _guess(clues: Clues) -> Iterator[Value]:
    amounts = [amount for amount in clues.amounts() if 1 <= amount < 10_000]
    return product(CURRENCIES, amounts)


def _amount_form(style: Literal["standard", "name"], weight: int) -> Form:
    """The form of an amount in Babel's style ``standard`` ($3.00) or ``name`` (3.00 US dollars)."""

    def write(value: Value, locale: Locale) -> str:
        from babel.numbers import format_currency, get_currency_precision

        code, amount = value
        # The plural depends on the written decimals, as in 1 US dollar, but 1.00 US dollars.
        amount = amount.quantize(Decimal(1).scaleb(-get_currency_precision(code)))
        return format_currency(amount, code, locale=locale, format_type=style)

    # $1,953.00 shows a year's digits, so the split that holds out the year holds out the amount.
    return Form("amount", weight, _draw, write, _guess, years=lambda value: (int(value[1]),))


# A sixth of the training phrases are amounts. The digits teach the model to copy an unseen year.
# With a third of the amounts, the model wrote 198 for 1988, and had 96.8 % right, not 99.5 %.
AMOUNT_FORMS = (_amount_form("standard", 9), _amount_form("name", 6))
