"""A CP-SAT model of a step: an order that is shorter than a value, or the proof that there is none."""

from ortools.sat.python import cp_model


class StepModel:
    """All orders of an instance whose objective is below `value` (in units).

    Micro-batches are alike, so on every stage those of one kind run in order: exchanging two of them changes nothing.
    Memory is held from an op's start to another op's end: what W releases from F (or from I) to W, what I releases
    from F to I.
    """

    def __init__(self, instance, value):
        self.instance = instance
        self.model = cp_model.CpModel()
        self.horizon = 2 * value + sum(instance.forward) + instance.stages * (9 + instance.message + instance.gap)
        self.target = self.model.NewIntVar(0, value - 1, 'target')
        self.ops = [[] for _ in range(instance.ranks)]  # [rank]: (start, op, literal or None)
        self.busy = [[] for _ in range(instance.ranks)]
        self.held = [[] for _ in range(instance.ranks)]  # [rank]: (interval, amount)
        self.start, self.end = {}, {}
        for stage in range(instance.stages):
            for microbatch in range(instance.microbatches):
                self.add_microbatch(stage, microbatch)
        self.add_messages()
        self.add_ranks()
        self.model.Minimize(self.target)

    def time(self):
        return self.model.NewIntVar(0, self.horizon, '')

    def add_op(self, stage, kind, n, duration, literal=None):
        rank = self.instance.rank_of(stage)
        start, end = self.time(), self.time()
        gap = self.instance.gap  # the rank rests after the op; `end` is the op's own
        if literal is None:
            interval = self.model.NewIntervalVar(start, duration + gap, end + gap, '')
        else:
            interval = self.model.NewOptionalIntervalVar(start, duration + gap, end + gap, literal, '')
        self.busy[rank].append(interval)
        self.ops[rank].append((start, (stage, kind, n), literal))
        return start, end

    def hold(self, stage, start, end, amount):
        if amount > 0:
            size = self.time()
            interval = self.model.NewIntervalVar(start, size, end, '')
            self.held[self.instance.rank_of(stage)].append((interval, amount))

    def add_microbatch(self, stage, n):
        instance, model = self.instance, self.model
        forward = self.add_op(stage, 'F', n, instance.forward[stage])
        if instance.full_can_pay(stage):
            full = model.NewBoolVar('')
            halves = [
                self.add_op(stage, 'I', n, instance.input_grad[stage], full.Not()),
                self.add_op(stage, 'W', n, instance.weight_grad[stage], full.Not()),
            ]
            whole = self.add_op(stage, 'B', n, instance.full[stage], full)
            gradient, weight_end = (self.time(), self.time()), self.time()
            for literal, first, last in ((full.Not(), *halves), (full, whole, whole)):
                model.Add(gradient[0] == first[0]).OnlyEnforceIf(literal)
                model.Add(gradient[1] == first[1]).OnlyEnforceIf(literal)
                model.Add(weight_end == last[1]).OnlyEnforceIf(literal)
            model.Add(halves[1][0] >= halves[0][1]).OnlyEnforceIf(full.Not())
            if instance.memory[1] > 0:  # only an I adds memory; a full backward does not
                size = self.time()
                kept = model.NewOptionalIntervalVar(gradient[0], size, weight_end, full.Not(), '')
                self.held[instance.rank_of(stage)].append((kept, instance.memory[1]))
        else:
            gradient = self.add_op(stage, 'I', n, instance.input_grad[stage])
            weight = self.add_op(stage, 'W', n, instance.weight_grad[stage])
            model.Add(weight[0] >= gradient[1])
            weight_end = weight[1]
            if n > 0:
                model.Add(weight[0] >= self.end[stage, 'W', n - 1])
        self.hold(stage, forward[0], gradient[1], -instance.memory[1])
        self.hold(stage, forward[0], weight_end, instance.memory[0] + min(0, instance.memory[1]))
        self.start[stage, 'F', n], self.end[stage, 'F', n] = forward
        self.start[stage, 'G', n], self.end[stage, 'G', n] = gradient
        self.end[stage, 'W', n] = weight_end
        if n > 0:
            model.Add(forward[0] >= self.end[stage, 'F', n - 1])
            model.Add(gradient[0] >= self.end[stage, 'G', n - 1])

    def add_messages(self):
        instance, last = self.instance, self.instance.stages - 1
        for stage in range(instance.stages):
            for n in range(instance.microbatches):
                self.model.Add(self.start[stage, 'G', n] >= self.end[stage, 'F', n])
                if stage > 0:
                    late = instance.latency(stage - 1, stage)
                    self.model.Add(self.start[stage, 'F', n] >= self.end[stage - 1, 'F', n] + late)
                if stage < last:
                    late = instance.latency(stage + 1, stage)
                    self.model.Add(self.start[stage, 'G', n] >= self.end[stage + 1, 'G', n] + late)

    def add_ranks(self):
        instance = self.instance
        for rank in range(instance.ranks):
            self.model.AddNoOverlap(self.busy[rank])
            if instance.cap is not None and self.held[rank]:
                intervals, amounts = zip(*self.held[rank])
                self.model.AddCumulative(intervals, amounts, instance.cap[rank])
            stages = [stage for stage in range(instance.stages) if instance.rank_of(stage) == rank]
            first = self.start[stages[0], 'F', 0] if instance.objective == 'span' else 0
            for stage in stages:
                for n in range(instance.microbatches):
                    self.model.Add(self.target >= self.end[stage, 'W', n] - first)
                    self.model.Add(self.target >= self.end[stage, 'G', n] - first)

    def solve(self, effort):
        """('none', None) if there is no such order, ('shorter', order), ('best', order) or ('unknown', None)."""
        solver = cp_model.CpSolver()
        solver.parameters.max_deterministic_time = effort
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 1
        status = solver.Solve(self.model)
        if status == cp_model.INFEASIBLE:
            return 'none', None
        if status not in (cp_model.FEASIBLE, cp_model.OPTIMAL):
            return 'unknown', None
        order = []
        for ops in self.ops:
            present = [(solver.Value(start), op) for start, op, literal in ops
                       if literal is None or solver.BooleanValue(literal)]
            order.append([op for _, op in sorted(present)])
        return ('best' if status == cp_model.OPTIMAL else 'shorter'), order
