// Reads launchers' environments, and resumes from and merges journals.
#include "tools/plan/plan_shards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "exec/runtime/launchers.h"
#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "tools/flags/words.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

constexpr std::size_t kMaxShards = 1'000'000;

std::optional<std::size_t> read_variable(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == '\0') return {};
  const auto number = parse_number<std::size_t>(text);
  if (number && *number <= kMaxShards) return number;
  throw Error(
      fmt::format("{}={} is not a process number; unset it, or give --shard K/N", name, text));
}

/// The shard of a process, if both variables are set. Job arrays may begin at any index and have a
/// stride.
std::optional<SweepShard> read_shard(const char* rank, const char* count, std::size_t first = 0,
                                     std::size_t step = 1) {
  const auto process = read_variable(rank);
  const auto processes = read_variable(count);
  if (!process || !processes) return {};
  if (*process >= first && step > 0 && (*process - first) / step < *processes)
    return SweepShard{(*process - first) / step, *processes};
  throw Error(fmt::format("{}={} does not go with {}={}; unset them, or give --shard K/N", rank,
                          *process, count, *processes));
}

/// The configurations of a shard without a known outcome.
std::vector<std::size_t> find_missing(const traces::PlanJournal& known, std::size_t configurations,
                                      SweepShard shard) {
  std::vector<std::size_t> missing;
  for (std::size_t at = shard.index; at < configurations; at += shard.count)
    if (!known.outcomes.contains(at)) missing.push_back(at);
  return missing;
}

/// Whether an outcome may be that of a configuration. Plans may have other slices and groups than
/// their configuration asks for.
bool is_of(const Outcome& outcome, const Configuration& configuration) {
  if (!outcome.plan) return true;
  const Shape& shape = outcome.plan->configuration.shape;
  const Shape& asked = configuration.shape;
  return shape.ranks == asked.ranks && shape.chunks == asked.chunks &&
         shape.microbatches == asked.microbatches;
}

Error make_empty_error(const std::string& part) {
  return Error(part + " is not there, or holds no results; run its shard again");
}

}  // namespace

SweepShard parse_shard(const std::string& text) {
  const std::vector<std::string> numbers = split(text, '/');
  const auto index = parse_number<std::size_t>(numbers.front());
  const auto count = parse_number<std::size_t>(numbers.back());
  if (numbers.size() != 2 || !index || !count || *index < 1 || *index > *count ||
      *count > kMaxShards)
    throw Error("'" + text + "' is not a shard; write 1/4 to 4/4 for four shards");
  return {*index - 1, *count};
}

std::optional<SweepShard> find_launched_shard() {
  std::optional<SweepShard> shard;
  for (const exec::Launcher& launcher : {exec::kMpiruns[0], exec::kMpiruns[1], exec::kSrun})
    if (!shard) shard = read_shard(launcher.rank, launcher.count);
  const auto array = read_shard("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT",
                                read_variable("SLURM_ARRAY_TASK_MIN").value_or(0),
                                read_variable("SLURM_ARRAY_TASK_STEP").value_or(1));
  if (array) {
    const SweepShard process = shard.value_or(SweepShard{});
    shard = {array->index * process.count + process.index, array->count * process.count};
  }
  return shard && shard->count > 1 ? shard : std::nullopt;
}

std::vector<std::string> read_question(const std::string& path) {
  const traces::PlanJournal journal = traces::read_plan_journal(path);
  if (journal.size == 0) throw make_empty_error(path);
  std::error_code ignored;
  for (const std::string& word : journal.arguments)
    if (const std::string name = traces::file_of(word);
        name == "-" || std::filesystem::exists(name, ignored))
      throw Error(
          fmt::format("the shards belong to a plan that reads {}, and files are named only on "
                      "the command line; give its flags again: 'plan {}'",
                      name, fmt::join(journal.arguments, " ")));
  return journal.arguments;
}

JournaledSweep::JournaledSweep(std::vector<std::string> question, SweepFiles files)
    : files_(std::move(files)) {
  if (!files_.shard && files_.parts.empty()) {
    files_.shard = find_launched_shard();
    launched_ = files_.shard.has_value();
  }
  shard_ = files_.shard.value_or(SweepShard{});
  if (shard_.count > 1 || !files_.journal.empty() || !files_.parts.empty())
    known_.fingerprint = traces::compute_fingerprint(question);
  known_.arguments = std::move(question);
}

/// The journal of a shard. One that was named may be shared by several.
std::string JournaledSweep::path_of(std::size_t shard) const {
  if (!files_.journal.empty() && !launched_) return files_.journal;
  return fmt::format("{}.{}-of-{}",
                     files_.journal.empty() ? "plan-" + known_.fingerprint : files_.journal,
                     shard + 1, shard_.count);
}

/// Adds the outcomes of a journal, except those of no configuration, and returns its size. Throws
/// Error for one of another sweep.
std::size_t JournaledSweep::add(const std::string& path,
                                const std::vector<Configuration>& configurations) {
  traces::PlanJournal journal = traces::read_plan_journal(path);
  if (journal.size > 0 && journal.arguments != known_.arguments)
    throw Error(fmt::format("{} is of another plan: 'plan {}'; give another file, or these flags",
                            path, fmt::join(journal.arguments, " ")));
  if (journal.size > 0 && journal.fingerprint != known_.fingerprint)
    throw Error(
        fmt::format("{} is of this plan, but a file that it reads has changed since, or "
                    "the program has; give another file, or remove it",
                    path));
  std::erase_if(journal.outcomes, [&](const auto& entry) {
    const auto& [at, outcome] = entry;
    return at >= configurations.size() || !is_of(outcome, configurations[at]);
  });
  known_.outcomes.merge(journal.outcomes);
  return journal.size;
}

void JournaledSweep::evaluate_shard(const std::vector<Configuration>& configurations,
                                    const MakeEvaluate& evaluate, SweepOptions options) {
  const std::string path = path_of(shard_.index);
  file_.emplace(path);  // before it is read
  known_.size = add(path, configurations);
  file_->begin(known_);
  const std::vector<std::size_t> left = find_missing(known_, configurations.size(), shard_);
  std::vector<Configuration> to_evaluate;
  for (const std::size_t at : left) to_evaluate.push_back(configurations[at]);
  if (shard_.index > 0) options.progress = {};  // one bar is enough
  options.record = [&](std::size_t begin, std::span<const Outcome> outcomes) {
    std::string lines;
    for (const Outcome& outcome : outcomes) lines += traces::write_outcome(left[begin++], outcome);
    file_->append(lines);
  };
  std::vector<Outcome> outcomes = sweep(to_evaluate, evaluate, options);
  for (std::size_t at = 0; at < left.size(); ++at)
    known_.outcomes[left[at]] = std::move(outcomes[at]);
}

/// Every process of a launched sweep tries this at its end; of those that find all results, the one
/// that succeeds in renaming the first journal shows the plan. The journals of others are read
/// without their locks: they only grow, and a line that is half written is ignored.
bool JournaledSweep::take_plan(const std::vector<Configuration>& configurations) {
  for (std::size_t shard = 0; shard < shard_.count; ++shard) add(path_of(shard), configurations);
  if (!find_missing(known_, configurations.size(), {}).empty()) return false;
  const std::string first = path_of(0);
  std::error_code fault;
  std::filesystem::rename(first, first + ".merged", fault);
  if (fault && fault != std::errc::no_such_file_or_directory)
    throw Error(Fault::kMachine,
                fmt::format("cannot rename {}: {}; its shards are kept, run the plan again", first,
                            fault.message()));
  is_last_ = !fault;
  return is_last_;
}

std::optional<std::vector<Outcome>> JournaledSweep::run(
    const std::vector<Configuration>& configurations, const MakeEvaluate& evaluate,
    SweepOptions options) {
  if (!has_journal()) return sweep(configurations, evaluate, options);
  if (files_.parts.empty()) evaluate_shard(configurations, evaluate, std::move(options));
  for (const std::string& part : files_.parts)
    if (add(part, configurations) == 0) throw make_empty_error(part);
  const std::size_t missing = find_missing(known_, configurations.size(), {}).size();
  if (missing > 0 && !files_.parts.empty())
    throw Error(
        fmt::format("the files lack {} of {} results; give those of all shards, and run "
                    "shards that did not end again: they resume",
                    missing, configurations.size()));
  if (launched_ ? !take_plan(configurations) : missing > 0) {
    print_message("bubblescope: shard {}/{} is in {}; {}\n", shard_.index + 1, shard_.count,
                  path_of(shard_.index),
                  launched_
                      ? "the last one to finish prints the plan"
                      : "'bubblescope plan --merge' and the files of all shards print the plan");
    return {};
  }
  std::vector<Outcome> outcomes;
  for (std::size_t at = 0; at < configurations.size(); ++at) {
    Outcome& outcome = outcomes.emplace_back(std::move(known_.outcomes[at]));
    if (!outcome.plan) continue;
    const Configuration evaluated = outcome.plan->configuration;
    outcome.plan->configuration = configurations[at];  // of which a journal has this alone:
    outcome.plan->configuration.shape = evaluated.shape;
    outcome.plan->configuration.recompute = evaluated.recompute;
    outcome.plan->configuration.modules = evaluated.modules;
  }
  return outcomes;
}

void JournaledSweep::finish() const {
  if (!is_last_) return;
  const std::string first = path_of(0);
  std::error_code ignored;
  // If the plan cannot be written, its journals must remain so that it can be printed again.
  if (std::fflush(stdout) != 0) {
    std::filesystem::rename(first + ".merged", first, ignored);
    throw Error(Fault::kMachine, "the plan cannot be written; its shards are kept, run it again");
  }
  std::filesystem::remove(first + ".merged", ignored);
  for (std::size_t shard = 1; shard < shard_.count; ++shard)
    std::filesystem::remove(path_of(shard), ignored);
}

}  // namespace bubblescope::tools
