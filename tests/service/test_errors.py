from __future__ import annotations

from service import errors, startup_errors
from service.api.error_handlers import ADMIN_STATUS_OF, STATUS_OF, documented_errors, error_codes


def all_service_errors() -> set[type[errors.ServiceError]]:
    """All that can be raised; the shared ones are only what their kinds have in common."""
    shared = (errors.Overloaded, errors.ReloadError)
    kinds: set[type[errors.ServiceError]] = {errors.ServiceError}
    kinds |= {*errors.ServiceError.__subclasses__()}
    for one in shared:
        kinds |= {*one.__subclasses__()}
    return kinds - {*shared}


def test_every_error_has_a_status_and_a_code_of_its_own() -> None:
    assert {*STATUS_OF, *ADMIN_STATUS_OF} == all_service_errors()
    codes = [error.code for error in (*STATUS_OF, *ADMIN_STATUS_OF)]
    assert len(codes) == len(set(codes))


def test_what_only_operators_are_answered_is_no_outcome_of_a_request_for_scores() -> None:
    assert {*ADMIN_STATUS_OF} == {*errors.ReloadError.__subclasses__(), errors.NotLive}
    assert not {error.code for error in ADMIN_STATUS_OF} & {*error_codes()}


def test_the_documented_statuses_are_those_that_are_sent() -> None:
    assert set(documented_errors()) == set(STATUS_OF.values())


def test_messages_name_both_numbers() -> None:
    assert "got 900" in str(errors.TooManyAds(900, 512))
    assert "512" in str(errors.TooManyAds(900, 512))
    assert "30 ms" in errors.DeadlineExceeded(0.03, 20).message
    assert "hold 5100 ms of work, the limit is 5000 ms" in errors.QueueFull(5.1, 5, 0.1).message
    assert "20 ads would take 80 ms or more now; with 30 ms left" in (
        errors.DeadlineUnreachable(20, 0.08, 0.03, 0.05).message
    )


def test_the_tree_in_the_docstring_names_every_error() -> None:
    for module, kinds in (
        (errors, all_service_errors()),
        (startup_errors, {*startup_errors.StartupError.__subclasses__()}),
    ):
        assert module.__doc__ is not None
        for error in kinds:
            assert error.__name__ in module.__doc__
