"""The rules of payment."""

from hypothesis import given
from hypothesis import strategies as st

from contracts.events import COUNTRIES, MAX_AMOUNT_MINOR, MERCHANTS
from services.payment.domain import OVER_LIMIT, RISK_LIMIT, TOO_RISKY, authorise, card_limit_minor, risk_score

amounts = st.integers(1, MAX_AMOUNT_MINOR)
payments = st.fixed_dictionaries(
    {
        "card_token": st.text(max_size=40),
        "amount_minor": amounts,
        "country": st.sampled_from(COUNTRIES) | st.text(max_size=3),
        "merchant": st.sampled_from(MERCHANTS) | st.text(max_size=12),
    }
)


@given(payments)
def test_an_accepted_payment_is_within_the_cards_limit_and_not_too_risky(payment):
    decline_reason, score = authorise(**payment)
    assert decline_reason in {None, OVER_LIMIT, TOO_RISKY}
    if decline_reason is None:
        assert payment["amount_minor"] <= card_limit_minor(payment["card_token"])
        assert score <= RISK_LIMIT


@given(amounts, amounts, st.sampled_from(COUNTRIES), st.sampled_from(MERCHANTS))
def test_a_larger_amount_is_never_less_risky(first, second, country, merchant):
    low, high = sorted((first, second))
    assert 0 <= risk_score(low, country, merchant) <= risk_score(high, country, merchant) <= 1


def test_a_card_is_declined_one_cent_above_its_limit():
    limit = card_limit_minor("token-1")
    assert authorise("token-1", limit, "FR", "books")[0] is None
    assert authorise("token-1", limit + 1, "FR", "books")[0] == OVER_LIMIT
