// Implements the class Schedule.
#include "tools/python/binding/schedule.h"

#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/validate.h"
#include "tools/flags/schedule_list.h"
#include "tools/flags/words.h"
#include "tools/inputs/load_schedule.h"
#include "tools/inputs/named_costs.h"
#include "tools/inputs/schedule_notes.h"
#include "tools/inputs/schedule_request.h"
#include "tools/python/binding/calls.h"
#include "tools/python/binding/options.h"
#include "tools/python/binding/scenarios.h"
#include "tools/python/binding/step.h"
#include "traces/schedules/cell.h"
#include "traces/schedules/infer_schedule.h"
#include "traces/schedules/native_schedule.h"
#include "traces/schedules/text_schedule.h"
#include "traces/timelines/schedule_file.h"

namespace bubblescope::tools {

namespace nb = nanobind;

namespace {

using Cells = std::vector<std::vector<std::string>>;

Cells write_cells(const Schedule& schedule) {
  Cells ranks;
  for (const RankOrder& list : traces::get_lists(schedule)) {
    std::vector<std::string>& cells = ranks.emplace_back();
    for (std::size_t at = 0; at < list.size();)
      at = traces::append_cell(cells.emplace_back(), list, at, traces::CellGrammar::kOwn);
  }
  return ranks;
}

/// Whether the order of a schedule of this name depends on costs and memory.
bool reads_costs(const std::string& name_or_path) {
  if (is_schedule_file(name_or_path)) return false;
  return find_schedule(name_or_path).reads_costs;
}

/// The notes that the program prints where it builds or reads a schedule to price its ops.
void note_prices(const PythonSchedule& schedule, const PredictOptions& options) {
  if (schedule.built_as.empty())
    note_uneven_ranks(schedule.valid(), options);
  else
    note_output_layer(find_schedule(schedule.built_as), options);
}

/// For schedules whose moves are added where their step is predicted.
PredictInputs without_moves(const PredictInputs& inputs) {
  return inputs.with([](PredictOptions& flags) {
    flags.moves = {};
    flags.shape.sharded = false;
  });
}

PythonStep simulate_schedule(const PythonSchedule& schedule, const Arguments& words) {
  return call_library([&] {
    const PredictInputs inputs = parse_prediction(words);
    expect_shape(schedule.get(), inputs.flags());
    note_prices(schedule, inputs.flags());
    if (!schedule.timeline_path.empty())
      expect_named_costs(schedule.timeline_path, schedule.get(), inputs.flags());
    return predict_step(schedule.valid(), inputs);
  });
}

/// Names and shapes of schedules that are given as such: name, ranks, micro-batches.
using Stated = std::vector<std::tuple<std::string, std::int32_t, std::int32_t>>;

/// Returns the ranks and micro-batches of schedules that are built from names or by functions, as
/// options leave them open and the other schedules or the files among the names state them. Throws
/// Error if options are wrong for every schedule, or if a size that is needed is not given. Remarks
/// on the options come later, when a step is predicted.
std::map<std::string, std::int32_t> find_sizes(const std::vector<std::string>& names,
                                               const Stated& others, bool calls_functions,
                                               const Arguments& words, PrintCapture& kept) {
  std::vector<std::string> built;
  for (const std::string& name : names) {
    reads_costs(name);  // throws where no schedule has this name
    if (!is_schedule_file(name)) built.push_back(name);
  }
  PredictOptions flags = parse_prediction(words).flags();
  const ShapeOptions given = flags.shape;
  if (has_open_sizes(flags) && (calls_functions || !built.empty())) {
    std::vector<StatedSizes> stated = read_stated_sizes(names);
    for (const auto& [name, ranks, microbatches] : others)
      stated.push_back({name, ranks, microbatches});
    flags.shape = take_stated_sizes(flags, stated);
  }
  if (!built.empty() && has_open_sizes(flags))
    throw Error("compare needs --pp and -m; for example 'bubblescope compare " + built.front() +
                " --pp 4 -m 8'");
  kept.messages.clear();
  std::map<std::string, std::int32_t> taken;
  if (!given.ranks && flags.shape.ranks) taken["pp"] = *flags.shape.ranks;
  if (!given.microbatches && flags.shape.microbatches) taken["m"] = *flags.shape.microbatches;
  return taken;
}

/// The inputs of a schedule in a comparison: flags that it does not have are meant for others.
PredictInputs parse_for(const std::string& name, const Arguments& words) {
  return parse_prediction(words).with([&](PredictOptions& flags) {
    if (!is_schedule_file(name)) flags.shape = drop_unused_flags(flags.shape, find_schedule(name));
  });
}

/// As compare does it.
PythonStep simulate_name(const std::string& name, const Arguments& words) {
  return call_library([&] {
    const PredictInputs inputs = parse_for(name, words);
    ValidSchedule schedule = load_valid_schedule(name, without_moves(inputs));
    const auto fits_any_shape = [](PredictOptions& flags) {
      flags.shape.ranks.reset();
      flags.shape.microbatches.reset();
      flags.shape.chunks.reset();
      flags.shape.slices.reset();
    };
    return predict_step(std::move(schedule), inputs.with(fits_any_shape));
  });
}

}  // namespace

const Schedule& PythonSchedule::get() const {
  if (const auto* valid = std::get_if<ValidSchedule>(&loaded)) return valid->get();
  return std::get<InvalidSchedule>(loaded).schedule;
}

const ValidSchedule& PythonSchedule::valid() const {
  if (const auto* valid = std::get_if<ValidSchedule>(&loaded)) return *valid;
  const auto& invalid = std::get<InvalidSchedule>(loaded);
  throw Error(Fault::kProblem,
              fmt::format("{} is not legal: {}, the first: {}", invalid.schedule.name,
                          counted(std::ssize(invalid.problems), "problem"),
                          to_string(invalid.problems[0])));
}

namespace {

PythonSchedule load_order(const std::string& name_or_path, const PredictInputs& inputs) {
  PythonSchedule schedule{load_schedule(name_or_path, without_moves(inputs), CostUse::kOrderOnly)};
  if (is_schedule_file(name_or_path) && traces::read_schedule_file(name_or_path).has_times)
    schedule.timeline_path = name_or_path;
  if (!is_schedule_file(name_or_path)) schedule.built_as = name_or_path;
  return schedule;
}

/// Legality, our own json, and the members beside it.
using State = std::tuple<bool, std::string, std::string, std::string>;

State get_state(const PythonSchedule& schedule) {
  return {std::holds_alternative<ValidSchedule>(schedule.loaded),
          traces::write_native_schedule(schedule.get()), schedule.timeline_path, schedule.built_as};
}

/// A file's messages are checked as well, so that what they forbid may pass the other checks.
PythonSchedule restore(const State& state) {
  const auto& [is_legal, native, timeline_path, built_as] = state;
  auto loaded = validate_schedule(traces::read_native_schedule(native, "schedule"));
  if (auto* const valid = std::get_if<ValidSchedule>(&loaded); valid != nullptr && !is_legal) {
    Problems problems = validate_message_order(*valid);
    if (auto deadlock = find_deadlock(*valid)) problems.push_back(*std::move(deadlock));
    if (!problems.empty()) loaded = InvalidSchedule{std::move(*valid).take(), std::move(problems)};
  }
  return {std::move(loaded), timeline_path, built_as};
}

}  // namespace

PythonSchedule load_python_schedule(const std::string& name_or_path, const Arguments& words) {
  return load_order(name_or_path, parse_prediction(words));
}

PythonSchedule parse_python_schedule(const std::vector<std::string>& ranks,
                                     const std::string& name) {
  return PythonSchedule{validate_schedule(traces::parse_schedule_text(join(ranks, "\n"), name))};
}

namespace {

void bind_names(nb::module_& module) {
  module.def("reads_costs", [](const std::string& name) {
    return call_library([&] { return reads_costs(name); });
  });
  module.def("find_sizes", [](const std::vector<std::string>& names, const Stated& others,
                              bool calls_functions, const Arguments& words) {
    return call_library_with_output([&](PrintCapture& kept) {
      return find_sizes(names, others, calls_functions, words, kept);
    });
  });
  module.def("is_schedule_file", &is_schedule_file);
  module.def("trained_schedules", &list_trained_schedules);
  module.def("simulate_name", &simulate_name);
}

void bind_content(nb::class_<PythonSchedule>& order) {
  order
      .def("native",
           [](const PythonSchedule& schedule) {
             return call_library([&] { return traces::write_native_schedule(schedule.get()); });
           })
      .def("renamed",
           [](PythonSchedule schedule, const std::string& name) {
             std::visit(
                 [&](auto& loaded) {
                   if constexpr (requires { loaded.rename(name); })
                     loaded.rename(name);
                   else
                     loaded.schedule.name = name;
                 },
                 schedule.loaded);
             return schedule;
           })
      .def("expect_shape",
           [](const PythonSchedule& schedule, const Arguments& words) {
             return call_library_with_output([&](PrintCapture& kept) {
               expect_shape(schedule.get(), parse_prediction(words).flags());
               kept.messages.clear();
               return true;
             });
           })
      .def("state", &get_state)
      .def_static("restore",
                  [](const State& state) { return call_library([&] { return restore(state); }); });
}

}  // namespace

void bind_schedule(nb::module_& module) {
  bind_names(module);
  const auto shape = [](auto member) {
    return [member](const PythonSchedule& schedule) { return schedule.get().shape.*member; };
  };
  nb::class_<PythonSchedule> order(module, "Order");
  bind_content(order);
  order
      .def_static("load",
                  [](const std::string& name, const Arguments& words) {
                    return call_library([&] { return load_python_schedule(name, words); });
                  })
      .def_static("load_compared",
                  [](const std::string& name, const Arguments& words) {
                    return call_library([&] { return load_order(name, parse_for(name, words)); });
                  })
      .def_static("parse",
                  [](const std::vector<std::string>& ranks, const std::string& name) {
                    return call_library([&] { return parse_python_schedule(ranks, name); });
                  })
      .def_prop_ro("name", [](const PythonSchedule& schedule) { return schedule.get().name; })
      .def_prop_ro("is_legal",
                   [](const PythonSchedule& schedule) {
                     return std::holds_alternative<ValidSchedule>(schedule.loaded);
                   })
      .def_prop_ro("pp", shape(&Shape::ranks))
      .def_prop_ro("vpp", shape(&Shape::chunks))
      .def_prop_ro("m", shape(&Shape::microbatches))
      .def_prop_ro("slices", shape(&Shape::slices))
      .def_prop_ro("rank_of_stage",
                   [](const PythonSchedule& schedule) { return schedule.get().rank_of_stage; })
      .def_prop_ro("cells",
                   [](const PythonSchedule& schedule) { return write_cells(schedule.get()); })
      .def("simulate", &simulate_schedule)
      .def("simulate_many",
           [](const PythonSchedule& schedule, const Arguments& words, const ScenarioCosts& costs) {
             return call_library([&] {
               return simulate_scenarios(schedule.valid(), parse_prediction(words), costs);
             });
           })
      .def("__eq__", [](const PythonSchedule& left, const PythonSchedule& right) {
        return left.get() == right.get();
      });
}

}  // namespace bubblescope::tools
