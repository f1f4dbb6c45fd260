"""Credentials by their hashes: who is known, what changes, which given tokens are too weak."""

from __future__ import annotations

import base64
import random

from hypothesis import given
from hypothesis import strategies as st
import pytest
from transport_rig import EVERYTHING, gate, TOKEN

from awp_ros_bridge.engine.permissions import Permissions, Scope
from awp_ros_bridge.transport.credentials import (
    check_given,
    Credential,
    digest_of,
    new_token,
    TokenGate,
)


def some(name: str, *scopes: Scope) -> Permissions:
    """Return permissions by name."""
    return Permissions(name, frozenset(scopes))


def test_every_known_token_opens_with_its_own_permissions_and_no_other() -> None:
    known = TokenGate(
        [
            Credential(digest_of('first'), some('a', Scope.OBSERVE)),
            Credential(digest_of('second'), some('b', Scope.ACT)),
        ]
    )
    assert known.find('first') == some('a', Scope.OBSERVE)
    assert known.find('second') == some('b', Scope.ACT)
    for wrong in ('', 'third', 'firs', 'first ', '\udcff' * 20):
        assert known.find(wrong) is None
    assert 'first' not in repr(vars(known))


@given(st.text(max_size=60))
def test_no_text_but_the_token_opens(text: str) -> None:
    assert (gate(TOKEN).find(text) is not None) is (text == TOKEN)


def test_what_is_replaced_says_which_credentials_are_gone_or_changed() -> None:
    keep = Credential(digest_of('keep'), some('keep', Scope.ACT))
    gone = Credential(digest_of('gone'), some('gone', Scope.ACT))
    less = Credential(digest_of('less'), some('less', Scope.ACT))
    known = TokenGate([keep, gone, less])
    narrowed = Credential(digest_of('less'), some('less', Scope.OBSERVE))
    assert known.replace([keep, narrowed]) == {'gone', 'less'}
    assert known.find('gone') is None
    assert known.find('less') == some('less', Scope.OBSERVE)
    assert known.still_gives(keep.permissions)
    assert not known.still_gives(less.permissions)
    assert known.replace([keep, narrowed]) == frozenset()


def test_while_it_is_not_usable_nobody_is_found() -> None:
    known = gate(TOKEN)
    known.is_usable = False
    assert known.find(TOKEN) is None
    known.is_usable = True
    assert known.find(TOKEN) == EVERYTHING


def test_new_tokens_are_long_random_and_can_be_sent_in_both_forms() -> None:
    made = {new_token() for _ in range(500)}
    assert len(made) == 500
    for token in made:
        check_given(token)
        assert token.startswith('awp_')
        assert len(token) == 47


@pytest.mark.parametrize(
    ('size', 'form'),
    [(16, 'base64'), (24, 'base64'), (16, 'hex'), (24, 'hex')],
)
def test_tokens_of_128_random_bits_or_more_may_be_given(size: int, form: str) -> None:
    source = random.Random(size)  # the same ones in each run
    for _ in range(2000):
        data = source.randbytes(size)
        text = base64.urlsafe_b64encode(data).decode().rstrip('=')
        check_given(data.hex() if form == 'hex' else text)


@pytest.mark.parametrize(
    ('token', 'complaint'),
    [
        ('', 'at least 22'),
        ('short', 'at least 22'),
        ('a' * 21, 'at least 22'),
        ('a' * 64, 'chosen'),
        ('abcabcabcabcabcabcabcabcabc', 'chosen'),
        ('passwordpasswordpassword', 'chosen'),
        ('correct-horse-battery-staple', 'chosen'),
        ('00000000-0000-0000-0000-000000000001', 'chosen'),
        ('has a space in it 0123456', 'cannot carry'),
        ('has,comma,in,it,0123456789', 'cannot carry'),
        ('has-ümlaut-0123456789-xyz', 'cannot carry'),
    ],
)
def test_weak_and_unusable_tokens_are_refused_without_being_shown(
    token: str, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint) as caught:
        check_given(token)
    assert not token or token not in str(caught.value)
