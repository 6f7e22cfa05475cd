from __future__ import annotations

from typing import TYPE_CHECKING

from transformers import TrainerControl, TrainerState, TrainingArguments

from model_export.distillation.trainer import STATE_EVERY_S, StateInTime

if TYPE_CHECKING:
    from pathlib import Path


def test_a_state_is_written_when_it_is_due_but_not_before_the_student_is_judged(
    tmp_path: Path,
) -> None:
    now_s = 0.0
    callback = StateInTime(lambda: now_s)
    arguments = TrainingArguments(str(tmp_path), num_train_epochs=2, report_to=[], use_cpu=True)
    written = []
    for step in range(1, 21):  # two epochs of ten, a step a minute
        now_s += 60
        control = TrainerControl()
        callback.on_step_end(arguments, TrainerState(global_step=step, max_steps=20), control)
        if control.should_save:
            written.append(step)
    assert STATE_EVERY_S == 300
    assert written == [5, 11, 16], "ten is the end of an epoch"
