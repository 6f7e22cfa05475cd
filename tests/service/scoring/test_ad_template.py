from __future__ import annotations

import pytest

from service.domain import Ad
from service.scoring.ad_template import AdTemplate


def test_fields_are_joined_in_order_and_empty_ones_are_left_out() -> None:
    template = AdTemplate(("title", "description"), " - ")
    assert template.render(Ad("1", title="Shoes", description="20% off")) == "Shoes - 20% off"
    assert template.render(Ad("1", title=" Shoes ", description="  ")) == "Shoes"


def test_a_ready_made_text_wins() -> None:
    assert AdTemplate().render(Ad("1", text="Shoes, 20% off")) == "Shoes, 20% off"


def test_a_blank_text_is_no_text() -> None:
    assert AdTemplate().render(Ad("1", title="Shoes", text=" \n")) == "Shoes"


@pytest.mark.parametrize("fields", [(), ("titel",), ("title", "brand")])
def test_fields_that_an_ad_does_not_have_are_refused(fields: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="ad template fields"):
        AdTemplate(fields)
