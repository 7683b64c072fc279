// Opens the files that flags name, each only once.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/ir/error.h"
#include "tools/inputs/config.h"
#include "tools/inputs/schedule_notes.h"
#include "traces/costs/cost_file.h"
#include "traces/costs/value_list.h"

namespace bubblescope::tools {

void expect_one_cost_source(const PredictOptions& options) {
  const CostOptions& cost = options.cost;
  const bool has_layout = !options.shape.layout.empty();
  const bool has_file = !cost.file.empty();
  std::vector<std::string> times(cost.given.begin(), cost.given.end());
  if (cost.network && (options.model.given() || has_layout))
    throw Error("--network goes with --f, --i, --w and --p2p; leave it, --model or --layout out");
  if (options.model.given() && (cost.any_uniform || has_file)) {
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

void read_lengths(ModelOptions& model) {
  if (model.lengths_file.empty()) return;
  if (!model.given())
    throw Error(
        "--lengths needs --model, which has times for every length; without one, write "
        "'per_microbatch' lists into a --costs file");
  if (model.sequence)
    throw Error("--lengths has the length of every sequence; leave --seq-length out");
  model.lengths = traces::read_lengths(model.lengths_file);
}

}  // namespace

CostTable cost_file_of(const CostOptions& options) {
  return options.content ? *options.content : traces::read_cost_file(options.file);
}

std::optional<Noise> noise_of_costs(const PredictOptions& options) {
  return options.cost.content ? options.cost.content->noise : std::nullopt;
}

PredictOptions read_inputs(PredictOptions options, const std::vector<std::string>& schedules) {
  std::vector<std::string> from_stdin;
  for (const std::string& schedule : schedules)
    if (schedule == "-") from_stdin.emplace_back("the schedule");
  if (options.cost.file == "-") from_stdin.emplace_back("--costs");
  if (options.model.model == "-") from_stdin.emplace_back("--model");
  if (options.model.gpu == "-") from_stdin.emplace_back("--gpu");
  if (options.model.lengths_file == "-") from_stdin.emplace_back("--lengths");
  if (options.arrivals_file == "-") from_stdin.emplace_back("--arrivals");
  if (from_stdin.size() > 1)
    throw Error(
        fmt::format("- is stdin, which can be read once, but it is given for {}; write all "
                    "but one to files",
                    fmt::join(from_stdin, " and ")));
  expect_one_cost_source(options);
  options = take_replicas(std::move(options));
  if (!options.cost.file.empty()) options.cost.content = traces::read_cost_file(options.cost.file);
  note_last_messages(options.cost);
  if (options.cost.content && options.noise.is_given) options.cost.content->noise.reset();
  read_lengths(options.model);
  if (!options.arrivals_file.empty())
    options.arrivals = traces::read_release_times(options.arrivals_file);
  if (options.model.given()) options.model.on_devices = resolve(options.model);
  if (options.loss) expect_loss_config(make_config(options));
  return options;
}

}  // namespace bubblescope::tools
