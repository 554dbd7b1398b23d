"""The turns of a loader: each batch has one step before the next one is handed out."""

from __future__ import annotations

from collections.abc import Callable

from dp.errors import PrivacyError

_WHY = "which batches are omitted may depend on records"


class Turns:
    """The batches of a plan that loaders drew, the parts of them that ``BatchMemoryManager`` drew, and their steps.

    Args:
        steps_left: returns the number of steps that were not taken yet.
    """

    def __init__(self, steps_left: Callable[[], int]) -> None:
        self._left = steps_left
        # The steps that are left once each batch has its step; None before the first batch.
        self._due: int | None = None
        # The parts that workers hold ahead of the one that is handed out, and those that were drawn in this epoch.
        self._ahead = 0
        self._parts = 0
        # True once steps of parts that workers drew ahead may have been those of others.
        self._is_lost = False

    def start(self, ahead: int) -> None:
        """Starts an epoch, whose loader draws so many parts ahead."""
        self.check()
        self._ahead, self._parts = ahead, 0

    def draw(self) -> None:
        """Counts a batch that was drawn."""
        self._due = (self._left() if self._due is None else self._due) - 1

    def hand_out(self) -> None:
        """Counts a batch that is handed out, in place of those that were drawn ahead."""
        self._due, self._ahead = self._left() - 1, 0

    def check(self) -> None:
        """Checks that each batch had its step.

        Raises:
            PrivacyError: ``privacy.steps``.
        """
        if self._is_lost:
            message = "parts that workers drew ahead had other steps than one each"
            raise PrivacyError(message, "privacy.steps", "loader", "a training from the start, with a new plan")
        missing = 0 if self._due is None else self._left() - self._due
        if missing > 0:
            what = "the last batch" if missing == 1 else f"{missing} batches that were drawn"
            expected = "one step on each batch: BatchMemoryManager splits those that memory does not hold"
            raise PrivacyError(f"{what} had no step: {_WHY}", "privacy.steps", "loader", expected)

    def check_step(self) -> None:
        """Checks that a batch is without its step.

        Raises:
            PrivacyError: ``privacy.steps``.
        """
        if self._due is not None and self._left() <= self._due:
            self._is_lost = self._ahead > 0
            message = "a step without a batch: the last batch had its step"
            raise PrivacyError(message, "privacy.steps", "optimizer", "one step on each batch")

    def draw_part(self, waiting: int) -> None:
        """Counts a part of a batch that is drawn, where so many parts wait for their steps.

        Raises:
            PrivacyError: ``privacy.steps``, unless each part that was handed out had one step.
        """
        expected = min(self._parts, self._ahead)
        if waiting != expected:
            self._is_lost = self._ahead > 0
            what = f"had no step: {_WHY}" if waiting > expected else "had several steps"
            help = "a smaller max_physical_batch_size needs less memory"
            raise PrivacyError(f"a part of a batch {what}", "privacy.steps", "loader", "one step on each part", help)
        self._parts += 1
