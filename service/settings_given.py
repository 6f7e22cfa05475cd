"""What an operator gave: mistakes that would pass unseen, and words for those that do not."""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from pydantic import BaseModel, SecretStr, ValidationError

from service.startup_errors import InvalidSetting, UnknownSetting

logger = logging.getLogger(__name__)

ENV_PREFIX = "ADREL_"

# Kubernetes puts these into every pod of a namespace that has a Service named adrel.
SERVICE_LINKS = re.compile(r"ADREL_(SERVICE_(HOST|PORT)|PORT_\d+_).*")

# Options are seen by everyone on the machine.
SECRET_OPTIONS = {
    "--api-keys": "use --api-keys-file, or the variable ADREL_API_KEYS",
    "--admin-keys": "use --admin-keys-file, or the variable ADREL_ADMIN_KEYS",
    "--redis-password": "use the variable ADREL_REDIS_PASSWORD",
}
KEY_VARIABLES = [
    f"{ENV_PREFIX}{keys}{suffix}" for keys in ("API_KEYS", "ADMIN_KEYS") for suffix in ("", "_FILE")
]


def refuse_unknown_variables(environ: Mapping[str, str], fields: Iterable[str]) -> None:
    """No variable with our prefix may be one that nothing reads.

    Args:
        environ: The process environment.
        fields: Names of the settings.

    Raises:
        UnknownSetting: There is such a variable.
    """
    known = [name.upper() for name in fields]
    for variable in sorted(environ):
        name = variable.upper().removeprefix(ENV_PREFIX)
        if SERVICE_LINKS.fullmatch(variable.upper()):
            continue
        if variable.upper().startswith(ENV_PREFIX) and name not in known:
            nearest = difflib.get_close_matches(name, known, n=1)
            raise UnknownSetting(variable, ENV_PREFIX + nearest[0] if nearest else None)


def refuse_empty_keys(environ: Mapping[str, str]) -> None:
    """Elsewhere empty means unset; a secret that was lost on the way would open the door.

    Args:
        environ: The process environment.

    Raises:
        InvalidSetting: A variable for keys is empty.
    """
    for variable, value in environ.items():
        if variable.upper() in KEY_VARIABLES and not value.strip():
            raise InvalidSetting(f"{variable}: is empty; unset it to ask for no key")


def refuse_unusable_options(argv: Sequence[str]) -> None:
    """No option may hold a secret or be empty.

    Args:
        argv: Arguments after the program's name.

    Raises:
        InvalidSetting: Names the option.
    """
    for option, value in zip_longest(argv, argv[1:]):
        name, has_value, after = option.partition("=")
        instead = SECRET_OPTIONS.get(name.replace("_", "-"))
        if instead is not None:
            raise InvalidSetting(f"{name}: options are seen by everyone on the machine; {instead}")
        # pydantic would take the default: an unset variable in a script must not start another
        # model than the one that was meant.
        if name.startswith("--") and (after if has_value else value) == "":
            raise InvalidSetting(f"{name}: is empty; leave it out for its default")


def describe(error: ValidationError) -> str:
    """Each fault with the name of its setting and what was given, on one line."""
    faults = []
    for fault in error.errors(include_url=False):
        name = ".".join(str(part) for part in fault["loc"])
        shown = f" (got {fault['input']!r})" if name else ""
        problem = fault["msg"].removeprefix("Value error, ")
        faults.append(f"{name + ': ' if name else ''}{problem}{shown}")
    return "; ".join(faults)


def log_differing(settings: BaseModel) -> None:
    """Say once what the process serves with."""
    facts = {"settings": differing(settings)}
    logger.info("settings, where they are not the defaults", extra=facts)


def differing(settings: BaseModel) -> dict[str, object]:
    """The settings that are not at their defaults; of secrets only that they are set.

    Args:
        settings: Effective ones.
    """
    shown: dict[str, object] = {}
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if value != field.default:
            shown[name] = "set, not shown" if isinstance(value, SecretStr) else value
    return shown
