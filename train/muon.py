"""Muon for the matrices and AdamW for everything else, as one optimizer that any trainer can hold.

Muon steps by the orthogonalised momentum, so its learning rate does not depend on how large gradients are. It
is meant for the matrices inside the layers; embeddings, the output head, norms and biases stay with AdamW.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class MuonWithAdamW(torch.optim.Optimizer):
    """Two optimizers behind one: shared state and parameter groups, so schedules and checkpoints see both.

    A learning-rate schedule scales both rates by the same factor.
    Not covered: matrices sharded across processes, which Muon would orthogonalise piece by piece.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        muon_learning_rate: float = 0.02,
        muon_momentum: float = 0.95,
        muon_weight_decay: float = 0.1,
        learning_rate: float = 4e-3,
        betas: tuple[float, float] = (0.9, 0.98),
        weight_decay: float = 0.01,
    ) -> None:
        matrices, others = split_parameters(model)
        muon = torch.optim.Muon(matrices, lr=muon_learning_rate, momentum=muon_momentum, weight_decay=muon_weight_decay)
        adamw = torch.optim.AdamW(others, lr=learning_rate, betas=betas, weight_decay=weight_decay)
        self.parts: tuple[torch.optim.Optimizer, ...] = (muon, adamw)
        super().__init__([group for part in self.parts for group in part.param_groups], {})
        self._share()

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step of both; the closure, if any, is evaluated once, before them."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for part in self.parts:
            part.step()
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore both parts; torch replaces state and groups by new objects, so they are shared again."""
        super().load_state_dict(state_dict)
        self._share()

    def _share(self) -> None:
        first = 0
        for part in self.parts:
            part.state = self.state
            part.param_groups = self.param_groups[first : first + len(part.param_groups)]
            first += len(part.param_groups)


def split_parameters(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The trainable parameters as (matrices inside the layers, all others), each once even where weights are tied."""
    apart = {id(parameter) for module in _tables(model) for parameter in module.parameters()}
    matrices: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            (matrices if parameter.ndim == 2 and id(parameter) not in apart else others).append(parameter)
    return matrices, others


def _tables(model: nn.Module) -> list[nn.Module]:
    """The modules whose rows are tokens: every embedding, and the output head where the model names one."""
    tables: list[nn.Module] = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    output = getattr(model, "get_output_embeddings", lambda: None)()
    return [*tables, *([output] if output is not None else [])]
