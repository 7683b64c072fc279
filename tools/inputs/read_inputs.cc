// Opens the files that flags name, each only once.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "sim/ir/error.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/resolve_model.h"
#include "tools/inputs/schedule_notes.h"
#include "traces/costs/cost_file.h"
#include "traces/costs/value_list.h"

namespace bubblescope::tools {

void expect_one_cost_source(const PredictOptions& flags) {
  const CostOptions& cost = flags.cost;
  const bool has_layout = !flags.shape.layout.empty();
  const bool has_file = !cost.file.empty();
  std::vector<std::string> times(cost.given.begin(), cost.given.end());
  if (cost.network && (flags.model.given() || has_layout))
    throw Error("--network goes with --f, --i, --w and --p2p; leave it, --model or --layout out");
  if (flags.model.given() && (cost.any_uniform || has_file)) {
    if (has_file) times.emplace_back("--costs");
    throw Error(fmt::format("--model gives all costs; leave out {}", fmt::join(times, ", ")));
  }
  if (has_file && has_layout)
    throw Error("--costs has the times of every stage; leave --layout out");
  if (has_file && cost.network)
    throw Error("--costs gives the network too: write it as the file's 'cluster', not --network");
  if (has_file && cost.any_uniform)
    throw Error(fmt::format("--costs gives all costs; leave out {}", fmt::join(times, ", ")));
}

namespace {

std::vector<std::int64_t> read_lengths(const ModelOptions& model) {
  if (model.lengths_file.empty()) return {};
  if (!model.given())
    throw Error(
        "--lengths needs --model, which has times for every length; without one, write "
        "'per_microbatch' lists into a --costs file");
  if (model.sequence)
    throw Error("--lengths has the length of every sequence; leave --seq-length out");
  return traces::read_lengths(model.lengths_file);
}

void expect_stdin_once(const PredictOptions& flags, const std::vector<std::string>& schedules) {
  std::vector<std::string> from_stdin;
  for (const std::string& schedule : schedules)
    if (schedule == "-") from_stdin.emplace_back("the schedule");
  if (flags.cost.file == "-") from_stdin.emplace_back("--costs");
  if (flags.model.model == "-") from_stdin.emplace_back("--model");
  if (flags.model.gpu == "-") from_stdin.emplace_back("--gpu");
  if (flags.model.lengths_file == "-") from_stdin.emplace_back("--lengths");
  if (flags.arrivals_file == "-") from_stdin.emplace_back("--arrivals");
  if (from_stdin.size() > 1)
    throw Error(
        fmt::format("- is stdin, which can be read once, but it is given for {}; write all "
                    "but one to files",
                    fmt::join(from_stdin, " and ")));
}

}  // namespace

std::optional<Noise> noise_of_costs(const PredictInputs& inputs) {
  const std::optional<CostTable>& costs = inputs.files().costs;
  return costs ? costs->noise : std::nullopt;
}

PredictInputs read_inputs(PredictOptions flags, const std::vector<std::string>& schedules) {
  expect_stdin_once(flags, schedules);
  expect_one_cost_source(flags);
  note_recompute_order(flags);
  flags = take_replicas(std::move(flags));
  InputFiles files;
  if (!flags.cost.file.empty()) {
    files.costs = traces::read_cost_file(flags.cost.file);
    note_last_messages(*files.costs, flags.cost.file);
    if (flags.noise.is_given) files.costs->noise.reset();
  }
  std::vector<std::int64_t> lengths = read_lengths(flags.model);
  if (!flags.arrivals_file.empty())
    files.arrivals = traces::read_release_times(flags.arrivals_file);
  if (flags.model.given()) files.model = resolve_model(flags.model, std::move(lengths));
  PredictInputs inputs(std::move(flags), std::move(files));
  if (inputs.flags().loss) expect_loss_config(inputs.config());
  return inputs;
}

}  // namespace bubblescope::tools
