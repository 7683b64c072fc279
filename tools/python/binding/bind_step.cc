// The class Step: numbers of a report, and the timeline as arrays.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sim/ir/op_kinds.h"
#include "sim/predict/model_fit.h"
#include "tools/python/binding/arrow.h"
#include "tools/python/binding/bind_report.h"
#include "tools/python/binding/calls.h"
#include "tools/python/binding/step.h"

namespace bubblescope::tools {

namespace nb = nanobind;

namespace {

template <class Number>
using Column = nb::ndarray<nb::numpy, const Number, nb::ndim<1>>;

/// Returns a column of numbers that lie in memory of the step, `stride` numbers apart.
template <class Number>
Column<Number> view(const nb::object& owner, const Number* first, std::size_t count,
                    std::int64_t stride = 1) {
  const std::size_t shape[] = {count};
  const std::int64_t strides[] = {stride};
  return Column<Number>(first, 1, shape, owner, strides);
}

/// Returns a column of one member of every instruction.
template <class Number, class Get>
Column<Number> view_member(const nb::object& self, Get get) {
  static_assert(sizeof(Instruction) % sizeof(Number) == 0);
  const std::vector<Instruction>& all =
      nb::cast<const PythonWholeStep&>(self).timed->program.instructions;
  const Number* first = all.empty() ? nullptr : &get(all.front());
  return view<Number>(self, first, all.size(), sizeof(Instruction) / sizeof(Number));
}

const BubbleReport& report_of(const PythonStep& step) { return step.timed->report; }

using PathEntry = std::tuple<std::int32_t, std::string, Nanos, Nanos>;

std::vector<PathEntry> critical_path(const PythonStep& step) {
  const TimedStep& timed = *step.timed;
  std::vector<PathEntry> path;
  for (const InstructionId id : timed.report.critical_path) {
    const Instruction& instruction = timed.program.instructions[id];
    path.emplace_back(instruction.rank, to_string(instruction.op), timed.timeline.start[id],
                      timed.timeline.end[id]);
  }
  return path;
}

std::vector<std::string> op_texts(const PythonWholeStep& step) {
  std::vector<std::string> texts;
  for (const Instruction& instruction : step.timed->program.instructions)
    texts.push_back(to_string(instruction.op));
  return texts;
}

/// Returns the text of one op, which may be counted from the end.
std::string op_text(const PythonWholeStep& step, std::int64_t at) {
  const std::vector<Instruction>& all = step.timed->program.instructions;
  if (at < 0) at += std::ssize(all);
  if (at < 0 || at >= std::ssize(all)) throw nb::index_error("no op has this number");
  return to_string(all[static_cast<std::size_t>(at)].op);
}

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (int kind = 0; kind < kOpKinds; ++kind) names.emplace_back(code(static_cast<OpKind>(kind)));
  return names;
}

std::tuple<std::vector<std::string>, std::vector<std::int32_t>> lanes(const PythonWholeStep& step) {
  NamedColumn column = find_lane_names(step.timed->program);
  return {std::move(column.names), std::move(column.codes)};
}

/// Whether no rank exceeds its cap, or its device.
bool fits(const PythonStep& step) {
  const std::optional<PlacedModel>& placed = step.timed->models.placed;
  return step.problems.empty() && (!placed || find_fit(*placed, step.timed->report).fits());
}

bool trains(const PythonStep& step) {
  const Schedule& schedule = *step.timed->schedule;
  return has_kind(schedule, OpKind::kBackward) || has_kind(schedule, OpKind::kInputGrad);
}

std::vector<std::string> messages_of(const Problems& problems) {
  std::vector<std::string> messages;
  for (const Problem& problem : problems) messages.push_back(to_string(problem));
  return messages;
}

void bind_columns(nb::class_<PythonWholeStep>& type) {
  const auto add_times = [&type](const char* name, auto get) {
    type.def_prop_ro(name, [get](const nb::object& self) {
      const std::vector<Nanos>& times = get(*nb::cast<const PythonWholeStep&>(self).timed);
      return view<Nanos>(self, times.data(), times.size());
    });
  };
  const auto add_member = [&type](const char* name, auto get) {
    using Number = std::remove_cvref_t<decltype(get(std::declval<const Instruction&>()))>;
    type.def_prop_ro(name,
                     [get](const nb::object& self) { return view_member<Number>(self, get); });
  };
  add_times(
      "start", [](const TimedStep& step) -> auto& { return step.timeline.start; });
  add_times(
      "end", [](const TimedStep& step) -> auto& { return step.timeline.end; });
  add_times(
      "slack", [](const TimedStep& step) -> auto& { return step.report.slack; });
  add_member(
      "rank", [](const Instruction& of) -> auto& { return of.rank; });
  add_member(
      "peer", [](const Instruction& of) -> auto& { return of.peer; });
  add_member(
      "stage", [](const Instruction& of) -> auto& { return of.op.stage; });
  add_member(
      "microbatch", [](const Instruction& of) -> auto& { return of.op.microbatch; });
  add_member(
      "slice", [](const Instruction& of) -> auto& { return of.op.slice; });
  add_member(
      "kind", [](const Instruction& of) -> auto& {
        return reinterpret_cast<const std::uint8_t&>(of.op.kind);
      });
}

void bind_whole_step(nb::module_& module) {
  module.def("kind_names", &kind_names);
  nb::class_<PythonWholeStep> type(module, "WholeStep");
  type.def_prop_ro("name", [](const PythonWholeStep& step) { return step.timed->schedule->name; })
      .def_prop_ro("critical_ids",
                   [](const PythonWholeStep& step) { return step.timed->report.critical_path; })
      .def_prop_ro("ops", &op_texts)
      .def_prop_ro("lanes", &lanes)
      .def("__len__",
           [](const PythonWholeStep& step) { return step.timed->program.instructions.size(); })
      .def("op", &op_text)
      .def("render",
           [](const PythonWholeStep& step, const std::string& format, const std::string& file) {
             const std::string content = call_library([&] { return render(step, format, file); });
             return nb::bytes(content.data(), content.size());
           })
      .def("arrow_stream", [](const PythonWholeStep& step) { return make_arrow_stream(step); });
  bind_columns(type);
}

}  // namespace

void bind_step(nb::module_& module) {
  bind_report(module);
  bind_whole_step(module);
  nb::class_<PythonStep>(module, "Step")
      .def_prop_ro("name", [](const PythonStep& step) { return step.timed->schedule->name; })
      .def_prop_ro("makespan", [](const PythonStep& step) { return report_of(step).makespan; })
      .def_prop_ro("max_span", [](const PythonStep& step) { return report_of(step).max_span; })
      .def_prop_ro("ideal", [](const PythonStep& step) { return report_of(step).ideal; })
      .def_prop_ro("lower_bound",
                   [](const PythonStep& step) { return report_of(step).lower_bound; })
      .def_prop_ro("period", [](const PythonStep& step) { return report_of(step).period; })
      .def_prop_ro("bubble", [](const PythonStep& step) { return report_of(step).bubble; })
      .def_prop_ro("ranks", [](const PythonStep& step) { return report_of(step).ranks; })
      .def_prop_ro("critical_path", &critical_path)
      .def_prop_ro("problems", [](const PythonStep& step) { return messages_of(step.problems); })
      .def_prop_ro("op_count",
                   [](const PythonStep& step) { return step.timed->schedule->op_count(); })
      .def_prop_ro("step",
                   [](const PythonStep& step) {
                     const BubbleReport& report = report_of(step);
                     return report.job ? report.job->step : report.makespan;
                   })
      .def_prop_ro("noise_makespans",
                   [](const PythonStep& step) {
                     const std::optional<StepTimes>& noise = report_of(step).noise;
                     return noise ? noise->makespans : std::vector<Nanos>{};
                   })
      .def_prop_ro("microbatches",
                   [](const PythonStep& step) { return step.timed->schedule->shape.microbatches; })
      .def_prop_ro("fits", &fits)
      .def_prop_ro("trains", &trains)
      .def("whole",
           [](const PythonStep& step) { return call_library([&] { return complete_step(step); }); })
      .def("json",
           [](const PythonStep& step) { return call_library([&] { return write_json(step); }); })
      .def("text",
           [](const PythonStep& step) { return call_library([&] { return write_text(step); }); });
}

}  // namespace bubblescope::tools
