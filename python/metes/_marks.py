"""What a framework uses its blocks for, noted while a script runs: weights, gradients, states.

The framework's history says when a block came and went, and on which line; not what it is for.
So parameters, gradients and optimiser states are looked at where they are sure to be there (after a
backward pass, around an optimiser's step, when a module moves), and what is noted is the address of
each and how many allocations there had been. ``_breakdown`` puts both together.

Invariant: what is noted is that something used an address at a moment; nothing is guessed here, the
script's tensors are not touched, and what fails here does not fail the script.
"""

import functools
import importlib
import sys
import weakref

from ._lines import user_line

#: What is looked at, the first that claims a block has it.
KINDS = ("weights", "buffers", "gradients", "optimizer_states")
#: Most events of a history that nobody keeps; the older are forgotten.
EVENTS = 4_000_000


class Marks:
    """The history of a device, and what was noted beside it."""

    def __init__(self, torch, whole=False):
        self.torch = torch
        #: Whether every event is kept.
        self.whole = whole
        #: Why there is no history.
        self.refused = None
        self.begun = False
        #: Looks: allocations so far, and addresses by kind.
        self.looks = []
        #: Passes: allocations before and after (None: it did not end), kind, line that began it.
        self.passes = []
        self._before_reset = 0
        self._snapshot = None
        self._last = dict.fromkeys(KINDS, ())
        self._modules, self._optimizers = {}, {}
        self._moving = self._backward = 0

    def prepare(self) -> None:
        """Has recording begin with the first use of the device, under whatever allocator the
        script has chosen until then."""
        try:
            self.torch.cuda._lazy_call(self._begin)
            self._follow_modules()
            self._follow_optimizers()
            self._follow_backward()
        except (AttributeError, ImportError) as error:
            # A framework of another version: what its blocks are for stays unknown.
            self.refused = f"this version of the framework cannot be followed: {error}"

    def _begin(self) -> None:
        torch = self.torch
        try:
            torch.cuda.memory._record_memory_history(
                context="alloc",
                stacks="python",
                max_entries=sys.maxsize if self.whole else EVENTS,
            )
        except RuntimeError as error:
            self.refused = f"this allocator keeps no history: {str(error).splitlines()[0]}"
            return
        self.begun = True
        core = torch._C
        # The script may record for itself: ours has all that it asks for, and goes on.
        for name in ("_cuda_record_memory_history", "_cuda_record_memory_history_legacy"):
            if hasattr(core, name):
                setattr(core, name, lambda *_, **__: None)
        reset = core._cuda_resetAccumulatedMemoryStats

        @functools.wraps(reset)
        def noted(device):
            if device == 0:
                self._before_reset = self.allocations()
            reset(device)

        core._cuda_resetAccumulatedMemoryStats = noted

    def allocations(self) -> int:
        """Allocations so far."""
        counts = self.torch._C._cuda_memoryStats(0)["allocation"]["all"]
        return self._before_reset + counts["allocated"]

    def snapshot(self) -> dict:
        """The framework's snapshot: its frames, and all that it kept."""
        if self._snapshot is None:
            self._snapshot = self.torch.cuda.memory._snapshot()
        return self._snapshot

    def look(self) -> None:
        """Notes what all parameters, gradients and states use now."""
        if not self.begun:
            return
        try:
            with self.torch._C.DisableTorchFunction():
                seen = self._seen()
        except Exception as error:  # tensors of any kind, in any state
            self.refused = self.refused or f"the script's tensors could not be looked at: {error}"
            return
        # Mostly as before: then nothing new is kept.
        for kind, addresses in seen.items():
            if addresses == self._last[kind]:
                seen[kind] = self._last[kind]
        self._last = seen
        self.looks.append((self.allocations(), seen))

    def _seen(self) -> dict:
        seen = {kind: {} for kind in KINDS}

        def parameter(tensor):
            seen["weights"].update(dict.fromkeys(addresses(tensor)))
            if tensor.is_leaf and tensor.grad is not None:
                seen["gradients"].update(dict.fromkeys(addresses(tensor.grad)))

        for module in _alive(self._modules):
            for tensor in list(module._parameters.values()):
                if tensor is not None:
                    parameter(tensor)
            for tensor in list(module._buffers.values()):
                if tensor is not None:
                    seen["buffers"].update(dict.fromkeys(addresses(tensor)))
        for optimizer in _alive(self._optimizers):
            for group in optimizer.param_groups:
                for tensor in group["params"]:
                    parameter(tensor)
            for state in list(optimizer.state.values()):
                for tensor in _tensors(self.torch, state):
                    seen["optimizer_states"].update(dict.fromkeys(addresses(tensor)))
        return {kind: tuple(found) for kind, found in seen.items()}

    def _follow_modules(self) -> None:
        modules = self.torch.nn.modules.module

        def registered(kind):
            def hook(module, _name, tensor):
                self._know(module)
                if not self.begun or tensor is None:
                    return
                found = tuple(addresses(tensor))
                if found:
                    self.looks.append((self.allocations(), {kind: found}))

            return hook

        modules.register_module_parameter_registration_hook(registered("weights"))
        modules.register_module_buffer_registration_hook(registered("buffers"))

        def child(module, _name, submodule):
            self._know(module)
            if submodule is not None:
                for each in submodule.modules():
                    self._know(each)

        modules.register_module_module_registration_hook(child)
        module_class = self.torch.nn.Module
        apply, restore = module_class._apply, module_class.__setstate__

        # Moving a module to a device replaces what its parameters hold.
        @functools.wraps(apply)
        def applied(module, *arguments, **named):
            self._moving += 1
            try:
                return apply(module, *arguments, **named)
            finally:
                self._moving -= 1
                if not self._moving:
                    for each in module.modules():
                        self._know(each)
                    self.look()

        # A copy, or a module from a file, registers nothing.
        @functools.wraps(restore)
        def restored(module, state):
            restore(module, state)
            self._know(module)

        module_class._apply, module_class.__setstate__ = applied, restored

    def _know(self, module) -> None:
        _remember(self._modules, module)

    def _follow_optimizers(self) -> None:
        optim = importlib.import_module("torch.optim.optimizer")

        def before(optimizer, *_):
            _remember(self._optimizers, optimizer)
            self.look()
            self._enter("step")

        def after(_optimizer, *_):
            self._leave("step")
            self.look()

        optim.register_optimizer_step_pre_hook(before)
        optim.register_optimizer_step_post_hook(after)

    def _follow_backward(self) -> None:
        """Of ``backward`` and ``grad`` what both end in."""
        graph = self.torch.autograd.graph
        engine = getattr(graph, "_engine_run_backward", None)
        if engine is None:
            return

        @functools.wraps(engine)
        def followed(*arguments, **named):
            # One inside another, as checkpoints have it, is part of it.
            if not self._backward:
                self._enter("backward")
            self._backward += 1
            try:
                return engine(*arguments, **named)
            finally:
                self._backward -= 1
                if not self._backward:
                    self._leave("backward")
                    self.look()

        for place in (graph, self.torch.autograd):
            if getattr(place, "_engine_run_backward", None) is engine:
                place._engine_run_backward = followed

    def _enter(self, kind: str) -> None:
        if self.begun:
            self.passes.append([self.allocations(), None, kind, user_line(sys._getframe(2))])

    def _leave(self, kind: str) -> None:
        if not self.begun:
            return
        for begun in reversed(self.passes):
            if begun[2] == kind and begun[1] is None:
                begun[1] = self.allocations()
                return


def _remember(known: dict, thing) -> None:
    """Keeps a weak reference; what can be compared need not be comparable."""
    key = id(thing)
    if key not in known:
        known[key] = weakref.ref(thing, lambda _: known.pop(key, None))


def _alive(known: dict):
    for reference in list(known.values()):
        thing = reference()
        if thing is not None:
            yield thing


def _tensors(torch, state):
    """The tensors in an optimiser's state."""
    if isinstance(state, torch.Tensor):
        yield state
    elif isinstance(state, dict):
        for value in state.values():
            yield from _tensors(torch, value)
    elif isinstance(state, list | tuple):
        for value in state:
            yield from _tensors(torch, value)


def addresses(tensor) -> list[int]:
    """Where the memory of a tensor lies on the device; of one made of others, where theirs do."""
    parts = getattr(type(tensor), "__tensor_flatten__", None)
    if parts is not None:
        names, _ = tensor.__tensor_flatten__()
        return [address for name in names for address in addresses(getattr(tensor, name))]
    if tensor.device.type != "cuda":
        return []
    try:
        address = tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return []  # sparse tensors have no memory of their own
    return [address] if address else []
