from __future__ import annotations

from model_export.column_names import COLUMNS, meant, nearest


def test_a_name_is_near_a_column_in_whatever_case() -> None:
    assert nearest(" Descripton", COLUMNS) == "description"
    assert nearest("brand", COLUMNS) is None


def test_names_that_may_be_misspelt_are_told_with_the_missing_columns_alone() -> None:
    assert meant(["query", "Titel", "lable", "brand"], ("title", "text")) == (
        "; did you mean 'title' by 'Titel'?"
    )
    assert meant(["Query", "LABEL"], COLUMNS) == (
        "; did you mean 'query' by 'Query', 'label' by 'LABEL'?"
    )


def test_where_no_name_is_near_nothing_is_told() -> None:
    assert meant(["query", "brand"], ("title", "text")) == ""
    assert meant(["text"], ("test",)) == "", "a column is meant for itself"
