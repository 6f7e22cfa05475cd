"""What an operator may change without exporting the model again.

Every field is a command-line option (`--max-batch-pairs`) and an environment variable
(`ADREL_MAX_BATCH_PAIRS`); the option wins. Facts about the model live in the bundle's manifest.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    CliImplicitFlag,
    CliSettingsSource,
    CliSuppress,
    SettingsConfigDict,
)

from service.command_line import OptionParser
from service.settings_given import (
    ENV_PREFIX,
    describe,
    refuse_empty_keys,
    refuse_unknown_variables,
    refuse_unusable_options,
)
from service.shared_cache.address import parse_redis_url
from service.startup_errors import InvalidSetting

FinitePositive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Settings(BaseSettings):
    """Serve a bundle over HTTP. Every option is also an environment variable: ADREL_PORT=8080.

    To score a file instead: python -m service score-file --help
    """

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_ignore_empty=True,
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        cli_kebab_case=True,
        cli_hide_none_type=True,
        cli_avoid_json=True,
    )

    bundle: Path = Path("bundles/default")
    """Folder of the bundle to serve."""

    shadow_bundle: Path | None = None
    """Folder of a second bundle, which scores a sample of the answers again while nothing else is
    to be done, unseen by callers. The metrics tell how its scores differ. Takes memory of its
    own."""

    shadow_share: float = Field(default=0.05, gt=0, le=1, allow_inf_nan=False)
    """Of the answered requests, the share that the shadow scores again. What it has no time for is
    dropped."""

    host: str = Field(default="127.0.0.1", min_length=1)
    """Address to listen on. Loopback by default: put a proxy or a pod network in front."""

    port: int = Field(default=8000, ge=0, le=65535)
    """TCP port; 0 takes a free one and says which."""

    admin_port: int | None = Field(default=None, ge=0, le=65535)
    """A second TCP port, for operators: `/metrics`, which is then there alone, and the probes; 0
    takes a free one. None: all is on one port."""

    admin_host: str = Field(default="127.0.0.1", min_length=1)
    """Address of the admin port."""

    api_keys_file: Path | None = None
    """File with the keys of the callers, one a line, # for comments; read again within seconds of a
    change. With keys every path needs one but the probes and the playground's page."""

    api_keys: CliSuppress[SecretStr | None] = None
    """Keys with commas between them, besides those of the file. A variable only: options are seen
    by everyone on the machine."""

    admin_keys_file: Path | None = None
    """Likewise with the operators' keys: with them the callers' keys do not open the admin port."""

    admin_keys: CliSuppress[SecretStr | None] = None
    """Operators' keys with commas between them, besides those of the file. A variable only."""

    playground: CliImplicitFlag[bool] = True
    """Serve a page at `/` to try the model out. It is static and can do nothing that the API
    cannot; turn it off where only programs should find something."""

    provider: Literal["cpu", "cuda"] = "cpu"
    """ONNX Runtime execution provider. The start fails where it is not available."""

    workers: PositiveInt = 1
    """Processes that serve on the one port, each on cores of its own. One is right until its event
    loop is the limit; each more costs a model's memory and has its own cache and queue."""

    worker_timeout_s: FinitePositive = 10
    """Of several workers, one whose event loop gives no sign for so long is killed and replaced."""

    inference_threads: int = Field(default=0, ge=0)
    """Batches that run at once in a process, one thread each. 0: as many as its cores (affinity and
    cgroup quota) on the CPU, 2 on a GPU. More than cores buys nothing and costs latency."""

    max_batch_pairs: int = Field(default=0, ge=0)
    """Most pairs in a batch. 0: 32 on the CPU, 64 on a GPU."""

    max_batch_tokens: int = Field(default=0, ge=0)
    """Most padded tokens in a batch (pairs x longest); a longer pair runs alone. 0: 512 on the CPU,
    where more only delays others, 32768 on a GPU. Bounds memory and the time of one batch."""

    max_padding_ratio: float = Field(default=0.1, ge=0, lt=1)
    """Most padding in a batch, as a share. Under it, what batches cost here decides."""

    max_queue_ms: FinitePositive = 5_000
    """Predicted milliseconds of work that may wait. Beyond it requests are refused with 429.
    Auctions do not count bulk work, which waits for them."""

    inference_gives_way: bool = True
    """Inference threads let every other thread go first (SCHED_IDLE on Linux), so that an answer
    that is due is not held up by a batch. Turn off where other programs fill the cores."""

    answer_margin_ms: float = Field(default=3, ge=0, allow_inf_nan=False)
    """An answer is made ready so much before its deadline, to be there in time; of a short timeout
    at most a quarter. Larger is safer, smaller leaves more time to compute."""

    cache_bytes: int = Field(default=33_554_432, ge=0)
    """Memory for scores and tokens of what was asked before, taken at the start. 0: no cache."""

    redis_url: str | None = None
    """A redis in which replicas share scores: `redis://[user@]host[:port][/database]`,
    `rediss://...` (TLS) or `unix:///path[?db=database]`. None: each has its own cache alone."""

    redis_password: CliSuppress[SecretStr | None] = None
    """For redis. A variable only: options are seen by everyone on the machine."""

    redis_timeout_ms: FinitePositive = 2
    """Longest wait for redis, counted in whole milliseconds, and never over a tenth of a request's
    time; what has not come by then is computed."""

    redis_ttl_s: PositiveInt = 86_400
    """Time after which redis forgets a score. Scores of one model never change: it bounds memory
    alone."""

    max_ads_per_request: PositiveInt = 1_000
    """Ads that one request may carry."""

    max_body_bytes: PositiveInt = 1_048_576
    """Request body ceiling. Also bounds the time that tokenizing one request can take."""

    body_timeout_s: FinitePositive = 10
    """Time for a request's body to come, counted from its headers; then the answer is 408."""

    max_connections: PositiveInt = 1000
    """Connections that may be open; more get 503 and are closed. Stay under the limit of open files
    (`ulimit -n`), and mind that each may hold a body in memory."""

    default_timeout_ms: FinitePositive = 10_000
    """Time for a request that names no `timeout_ms`. Auctions should name theirs."""

    max_timeout_ms: FinitePositive = 60_000
    """Longest `timeout_ms` that a request may name. That of other protocols' clients is cut to
    it."""

    watchdog_s: FinitePositive = 10
    """A batch that runs longer, and 20 times longer than predicted, is given up: its ads fail and
    `/livez` asks for a restart. An event loop that stands still for so long has all threads' stacks
    written to the log."""

    shutdown_delay_s: float = Field(default=0, ge=0, allow_inf_nan=False)
    """After a stop signal, time in which `/readyz` fails and requests are still taken and answered,
    until nobody sends any. In Kubernetes 5 to 10, in place of a `preStop` sleep."""

    drain_timeout_s: FinitePositive = 10
    """Then, time to finish what was accepted. Keep the sum of both under the orchestrator's, with
    5 s to spare."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe log lines to write."""

    log_requests: CliImplicitFlag[bool] = False
    """Write a log line for every request, not only for those that ended badly."""

    @model_validator(mode="after")
    def _admin_keys_are_for_an_admin_port(self) -> Self:
        if self.admin_port is None and (self.admin_keys or self.admin_keys_file):
            raise ValueError("admin_keys need an admin_port: there is nothing else that they open")
        return self

    @model_validator(mode="after")
    def _ports_differ(self) -> Self:
        if self.port == self.admin_port != 0:
            raise ValueError(f"port and admin_port are both {self.port}: they must differ")
        return self

    @model_validator(mode="after")
    def _redis_is_named(self) -> Self:
        if self.redis_url is not None:
            try:
                parse_redis_url(self.redis_url)
            except ValueError as error:
                raise ValueError(f"redis_url {error}") from None
        return self

    @model_validator(mode="after")
    def _default_is_within_the_ceiling(self) -> Self:
        if self.default_timeout_ms > self.max_timeout_ms:
            raise ValueError(
                f"default_timeout_ms is {self.default_timeout_ms:g}, over "
                f"max_timeout_ms {self.max_timeout_ms:g}"
            )
        return self


def load_settings(argv: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Settings from the command line, then the environment, then the defaults.

    Args:
        argv: Arguments after the program's name. `--help` prints and exits.
        environ: The process environment; only checked for unknown names, since
            pydantic-settings reads the real one itself.

    Raises:
        UnknownSetting: An `ADREL_` variable that no field reads.
        InvalidSetting: A value that cannot work; names the field.
    """
    refuse_unknown_variables(environ, Settings.model_fields)
    refuse_empty_keys(environ)
    refuse_unusable_options(argv)
    try:
        parser = OptionParser(
            prog="python -m service",
            description=inspect.getdoc(Settings),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        cli = CliSettingsSource[object](Settings, cli_parse_args=list(argv), root_parser=parser)
        return Settings(_cli_settings_source=cli)
    except ValidationError as error:
        raise InvalidSetting(describe(error)) from error
