from __future__ import annotations

from ottla.net.held import HeldBytes


class Holder:
    def __init__(self, name: str, held_bytes: int = 0) -> None:
        self.name = name
        self.held_bytes = held_bytes

    def __repr__(self) -> str:
        return self.name


ANN, BOB, CYD = Holder("ann"), Holder("bob"), Holder("cyd")


def test_the_client_that_has_been_slow_longest_is_closed_first() -> None:
    gone: list[Holder] = []
    held: HeldBytes[Holder] = HeldBytes(100, [], gone.append)
    held.slowed(ANN, 40)
    held.slowed(BOB, 40)
    assert gone == []
    held.slowed(CYD, 90)
    assert gone == [ANN, BOB]
    assert held.unsent_bytes == 90


def test_clients_that_caught_up_or_left_no_longer_count() -> None:
    gone: list[Holder] = []
    held: HeldBytes[Holder] = HeldBytes(100, [], gone.append)
    for _ in range(10):
        held.slowed(ANN, 90)
        held.caught_up(ANN)
    held.caught_up(BOB)
    assert gone == []
    assert held.unsent_bytes == 0


def test_a_response_that_is_too_large_closes_its_own_client() -> None:
    gone: list[Holder] = []
    held: HeldBytes[Holder] = HeldBytes(100, [], gone.append)
    held.slowed(ANN, 101)
    assert gone == [ANN]
    assert held.unsent_bytes == 0


def test_responses_get_a_share_of_the_remaining_memory() -> None:
    held: HeldBytes[Holder] = HeldBytes(1000, [], lambda _: None)
    assert held.room == 250
    held.slowed(ANN, 600)
    assert held.room == 100
    held.slowed(BOB, 400)
    assert held.room == 0


def test_complete_requests_are_not_counted_as_partial() -> None:
    gone: list[Holder] = []
    small = Holder("small", 10)
    held = HeldBytes(100, [small], gone.append)
    for _ in range(50):
        held.half_received(30)
    assert gone == []


def test_of_partial_requests_the_largest_are_dropped_first() -> None:
    gone: list[Holder] = []
    ann, bob, cyd = Holder("ann", 20), Holder("bob", 60), Holder("cyd", 50)
    held = HeldBytes(100, [ann, bob, cyd], gone.append)
    held.half_received(130)
    assert gone == [bob]
