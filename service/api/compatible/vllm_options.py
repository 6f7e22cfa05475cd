"""What vLLM takes on each of its routes, beside the texts."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from service.api.answering import invalid
from service.api.compatible.calls import Call, LenientBody
from service.api.schemas import RequestId

ModelName = Annotated[
    str | None,
    Field(default=None, min_length=1, description="Any name: there is one model, and it answers."),
]


class VllmOptions(LenientBody):
    """The options. Those that would change the numbers are obeyed or refused, never ignored."""

    model: ModelName = None
    use_activation: bool | None = Field(
        default=None, description="False: the logit in place of the score."
    )
    activation: bool | None = Field(
        default=None, description="The same, as older releases spell it."
    )
    softmax: bool | None = Field(default=None, description="Likewise.")
    truncate_prompt_tokens: int | None = Field(
        default=None, description="-1, or no less than the model's own room for a pair."
    )
    priority: int | None = Field(default=None, description="Over 0 is bulk work.")
    request_id: RequestId | None = Field(default=None, description="Echoed.")

    @property
    def wants_logits(self) -> bool:
        """The numbers before calibration are asked for."""
        return False in (self.use_activation, self.activation, self.softmax)


def check_room(call: Call, options: VllmOptions) -> None:
    """Refuse to read less than the model can: the scores would be other ones.

    Raises:
        InvalidRequest: Fewer tokens are asked for.
    """
    _, _, model = call.state.ready_parts()
    room, wanted = model["inputs"]["max_length_tokens"], options.truncate_prompt_tokens
    if wanted is not None and wanted != -1 and wanted < room:
        raise invalid("truncate_prompt_tokens", f"got {wanted}; pairs are read up to {room} tokens")
