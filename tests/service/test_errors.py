from __future__ import annotations

from service import errors
from service.api.error_handlers import STATUS_OF, documented_errors, error_codes


def all_service_errors() -> set[type[errors.ServiceError]]:
    return {errors.ServiceError, *errors.ServiceError.__subclasses__()}


def test_every_error_has_a_status_and_a_code_of_its_own() -> None:
    assert set(STATUS_OF) == all_service_errors()
    codes = list(error_codes())
    assert len(codes) == len(set(codes))


def test_the_documented_statuses_are_those_that_are_sent() -> None:
    assert set(documented_errors()) == set(STATUS_OF.values())


def test_messages_name_both_numbers() -> None:
    assert "got 900" in str(errors.TooManyAds(900, 512))
    assert "512" in str(errors.TooManyAds(900, 512))
    assert "30 ms" in errors.DeadlineExceeded(0.03, 20).message
    assert "4000 of at most 4096" in errors.QueueFull(4000, 4096).message


def test_the_tree_in_the_docstring_names_every_error() -> None:
    assert errors.__doc__ is not None
    for error in (*all_service_errors(), *errors.StartupError.__subclasses__()):
        assert error.__name__ in errors.__doc__
