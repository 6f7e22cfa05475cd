"""How an ad becomes the text that the model reads.

The template is a fact of the model (it was trained on such text), so it travels in the manifest
and is applied by training, export and serving alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from service.domain import Ad

TEMPLATE_FIELDS = ("title", "description")


@dataclass(frozen=True, slots=True)
class AdTemplate:
    """Fields of an ad, in order, joined by a separator.

    Attributes:
        fields: Names out of `TEMPLATE_FIELDS`; empty ones are left out when joining.
        separator: Stands between two non-empty fields.

    Raises:
        ValueError: A field that an ad does not have, or none at all.
    """

    fields: tuple[str, ...] = TEMPLATE_FIELDS
    separator: str = " "

    def __post_init__(self) -> None:
        unknown = [name for name in self.fields if name not in TEMPLATE_FIELDS]
        if unknown or not self.fields:
            raise ValueError(
                f"ad template fields must be some of {TEMPLATE_FIELDS}, got {self.fields!r}"
            )

    def render(self, ad: Ad) -> str:
        """The ad as one text: its ready-made `text` if it has one, else its fields joined."""
        if ad.text.strip():
            return ad.text
        values = (getattr(ad, name).strip() for name in self.fields)
        return self.separator.join(value for value in values if value)
