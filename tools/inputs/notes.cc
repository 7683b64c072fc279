// Puts notes into words.
#include "tools/inputs/notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/ir/offload.h"
#include "sim/ir/op_kinds.h"
#include "sim/model/restage.h"
#include "sim/predict/serial_step.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

void warn_of_unequal_backwards(const Schedule& schedule, const UniformCost& cost) {
  print_message("bubblescope: {} splits backwards: they take --i {} and --w {}, not --b {}\n",
                schedule.name, to_text(cost.input_grad), to_text(cost.weight_grad),
                to_text(cost.full_backward()));
}

/// `others` have another number of stages than the file: "zb-v has 8".
void note_restaging(const std::string& others, bool changes_ends, const PredictInputs& inputs) {
  const auto& table = std::get<CostTable>(inputs.config().costs);
  print_message(
      "bubblescope: {} has {} and {}: their work is cut or joined as if it were spread evenly "
      "within each{}\n",
      inputs.flags().cost.file, counted(table.stages.size(), "stage"), others,
      changes_ends ? fmt::format("; the first and the last count as having {} ('ends' in the file)",
                                 summary_of(kStageEnds, table.ends))
                   : "");
}

void note_restaging(const Schedule& schedule, const PredictInputs& inputs) {
  const auto& table = std::get<CostTable>(inputs.config().costs);
  note_restaging(fmt::format("{} has {}", schedule.name, schedule.stages_per_pipeline()),
                 restages_ends(table, schedule), inputs);
}

/// Says where pairs take longer than their ops one after the other, although they overlap. The
/// Config is the given one, not that with the layers of this step: the serial one has its own.
void note_slow_pairs(const Prediction& made, const Config& config) {
  constexpr double kNoticed = 1.005;
  if (!made.models.placed || !made.models.placed->on.parts) return;
  const std::optional<Nanos> serial = find_serial_step(made.schedule, config);
  if (!serial ||
      static_cast<double>(made.report.makespan) < kNoticed * static_cast<double>(*serial))
    return;
  print_message(
      "bubblescope: {} takes {} with pairs whose parts interleave, and {} with one op of a pair "
      "after the other (--overlap serial)\n",
      made.schedule->name, to_text(made.report.makespan), to_text(*serial));
}

/// Says where activations are offloaded, and no rank's peak is lower for it.
void note_same_peak(const Schedule& schedule, const Moves& moves) {
  if (moves.offload && has_kind(schedule, OpKind::kEvict) && !lowers_peak(schedule))
    print_message(
        "bubblescope: --offload lowers no peak of {}: with this share, the activations that are "
        "away are not among those of the peak; offload more\n",
        schedule.name);
}

}  // namespace

void warn_of_cap_unit(const UniformMemory& memory) {
  const bool plain = memory.unit.forward == kWhole && memory.unit.weight_grad == -kWhole;
  const std::string cap = format_millionths(memory.cap.front());
  const bool is_one = memory.cap.front() == kWhole;
  print_message("bubblescope: --cap {0} is {0} {1}, not bytes; --cap {0}GiB would be\n", cap,
                !plain   ? "of the unit of --mem"
                : is_one ? "micro-batch of activations"
                         : "micro-batches of activations");
}

void note_restaged_plans(std::span<const ValidSchedule> orders, const PredictInputs& inputs) {
  const auto* const table = std::get_if<CostTable>(&inputs.config().costs);
  if (table == nullptr) return;
  std::set<std::int32_t> stages;
  bool changes_ends = false;
  for (const ValidSchedule& order : orders) {
    if (!is_restaged(*table, order)) continue;
    stages.insert(order->stages_per_pipeline());
    changes_ends = changes_ends || restages_ends(*table, order);
  }
  if (!stages.empty())
    note_restaging(fmt::format("plans have {}", fmt::join(stages, ", ")), changes_ends, inputs);
}

void print_notes(std::span<const Note> notes, const Schedule& schedule,
                 const PredictInputs& inputs) {
  const PredictOptions& flags = inputs.flags();
  for (const Note note : notes) {
    switch (note) {
      case Note::kUnequalBackwards: warn_of_unequal_backwards(schedule, flags.cost.uniform); break;
      case Note::kCapInUnits: warn_of_cap_unit(flags.memory); break;
      case Note::kRestaged: note_restaging(schedule, inputs); break;
      case Note::kNoPairs:
        print_message(
            "bubblescope: {} makes overlapped pairs shorter than their two ops, and {} has none: "
            "orders with pairs may be faster than the lower bound, which counts ops as they are\n",
            flags.cost.file, schedule.name);
        break;
    }
  }
}

void print_step_notes(const Prediction& made, const PredictInputs& inputs,
                      std::span<const Note> noted) {
  std::vector<Note> notes = made.notes;
  std::erase_if(notes, [noted](Note note) {
    return std::find(noted.begin(), noted.end(), note) != noted.end();
  });
  print_notes(notes, made.schedule, inputs);
  note_slow_pairs(made, inputs.config());
  note_same_peak(made.schedule, inputs.config().moves);
}

}  // namespace bubblescope::tools
