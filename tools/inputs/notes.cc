// Puts notes into words.
#include "tools/inputs/notes.h"

#include <fmt/format.h>

#include <variant>

#include "sim/model/restage.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

void warn_of_unequal_backwards(const Schedule& schedule, const UniformCost& cost) {
  print_message("bubblescope: {} splits backwards: they take --i {} and --w {}, not --b {}\n",
                schedule.name, to_text(cost.input_grad), to_text(cost.weight_grad),
                to_text(cost.full_backward()));
}

void note_restaging(const Schedule& schedule, const PredictInputs& inputs) {
  const auto& table = std::get<CostTable>(inputs.config().costs);
  print_message(
      "bubblescope: {} has {} stages and {} has {}: their work is cut or joined as if it were "
      "spread evenly within each{}\n",
      inputs.flags().cost.file, table.stages.size(), schedule.name, schedule.stages_per_pipeline(),
      restages_ends(table, schedule)
          ? fmt::format("; the first and the last count as having {} ('ends' in the file)",
                        summary_of(kStageEnds, table.ends))
          : "");
}

}  // namespace

void warn_of_cap_unit(const UniformMemory& memory) {
  const bool plain = memory.unit.forward == kWhole && memory.unit.weight_grad == -kWhole;
  const std::string cap = format_millionths(memory.cap.front());
  print_message("bubblescope: --cap {0} is {0} {1}, not bytes; --cap {0}GiB would be\n", cap,
                plain ? "micro-batches of activations" : "of the unit of --mem");
}

void print_notes(std::span<const Note> notes, const Schedule& schedule,
                 const PredictInputs& inputs) {
  const PredictOptions& flags = inputs.flags();
  for (const Note note : notes) {
    switch (note) {
      case Note::kUnequalBackwards: warn_of_unequal_backwards(schedule, flags.cost.uniform); break;
      case Note::kCapInUnits:
        if (flags.notes_cap_unit) warn_of_cap_unit(flags.memory);
        break;
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

}  // namespace bubblescope::tools
