// Reads launchers' environments, and writes and merges journals.
#include "tools/plan/plan_shards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "exec/runtime/launchers.h"
#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

constexpr std::size_t kMaxShards = 1'000'000;

std::optional<std::size_t> number_of(std::string_view text) {
  const auto number = parse_number<std::size_t>(text);
  return number && *number <= kMaxShards ? number : std::nullopt;
}

std::optional<std::size_t> environment_number(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return {};
  const std::optional<std::size_t> number = number_of(text);
  if (!number)
    throw Error(
        fmt::format("{}={} is not a process number; unset it, or give --shard K/N", name, text));
  return number;
}

/// The shard of a process, if both variables are set. Job arrays may begin at any index and have a
/// stride.
std::optional<traces::SweepShard> shard_of(const char* rank, const char* count,
                                           std::size_t first = 0, std::size_t step = 1) {
  const auto process = environment_number(rank);
  const auto processes = environment_number(count);
  if (!process || !processes) return {};
  const std::size_t index = *process < first || step == 0 ? *processes : (*process - first) / step;
  if (index >= *processes)
    throw Error(fmt::format("{}={} does not go with {}={}; unset them, or give --shard K/N", rank,
                            *process, count, *processes));
  return traces::SweepShard{index, *processes};
}

/// Journals contain only the shapes that result; the rest of a configuration is the sweep's.
void restore_configuration(Outcome& outcome, const Configuration& asked) {
  if (!outcome.plan) return;
  const Shape shape = outcome.plan->configuration.shape;
  outcome.plan->configuration = asked;
  outcome.plan->configuration.shape = shape;
}

/// The outcomes of a whole sweep in the order of its configurations.
std::vector<Outcome> complete(traces::PlanJournal journal,
                              const std::vector<Configuration>& configurations) {
  if (journal.outcomes.size() != configurations.size())
    throw Error("these are results of another sweep; run its shards again");
  std::vector<Outcome> all;
  for (auto& [at, outcome] : journal.outcomes) {
    restore_configuration(outcome, configurations[at]);
    all.push_back(std::move(outcome));
  }
  return all;
}

/// The journals of one sweep together, and what they lack; empty where they are complete.
struct GatheredPlans {
  traces::PlanJournal whole;
  std::string lack = {};
};

/// Throws Error for journals of different sweeps.
GatheredPlans gather_journals(const std::vector<std::string>& paths) {
  GatheredPlans all;
  std::set<std::size_t> shards;
  for (const std::string& path : paths) {
    std::optional<traces::PlanJournal> part = traces::read_plan_journal(path);
    if (!part) return {{}, path + " is not there, or holds no results; run its shard again"};
    const auto [index, count] = part->owner.shard;
    const std::size_t own = (part->owner.configurations + count - 1 - index) / count;
    if (own > part->outcomes.size())
      return {{},
              fmt::format("{} lacks {} of its configurations; run its shard again, it resumes "
                          "from there",
                          path, own - part->outcomes.size())};
    if (shards.empty()) all.whole.owner = part->owner;
    all.whole.owner.shard.index = index;
    if (part->owner != all.whole.owner)
      throw Error(fmt::format("{} is of another plan than {}: 'plan {}'", path, paths[0],
                              fmt::join(part->owner.arguments, " ")));
    shards.insert(index);
    all.whole.outcomes.merge(part->outcomes);
  }
  std::size_t missing = 0;
  while (shards.contains(missing)) ++missing;
  if (missing < all.whole.owner.shard.count)
    all.lack = fmt::format("shard {}/{} is missing; give its file, too", missing + 1,
                           all.whole.owner.shard.count);
  return all;
}

}  // namespace

traces::SweepShard parse_shard(const std::string& text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const auto index = number_of(std::string_view(text).substr(0, slash));
  const auto count = number_of(std::string_view(text).substr(std::min(slash + 1, text.size())));
  if (!index || !count || *index < 1 || *index > *count)
    throw Error("'" + text + "' is not a shard; write 1/4 to 4/4 for four shards");
  return {*index - 1, *count};
}

std::optional<traces::SweepShard> find_launched_shard() {
  std::optional<traces::SweepShard> shard;
  for (const exec::Launcher& launcher : {exec::kMpiruns[0], exec::kMpiruns[1], exec::kSrun})
    if (!shard) shard = shard_of(launcher.rank, launcher.count);
  const auto array = shard_of("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT",
                              environment_number("SLURM_ARRAY_TASK_MIN").value_or(0),
                              environment_number("SLURM_ARRAY_TASK_STEP").value_or(1));
  if (array) {
    const traces::SweepShard process = shard.value_or(traces::SweepShard{});
    shard = {array->index * process.count + process.index, array->count * process.count};
  }
  if (shard && shard->count == 1) return {};
  return shard;
}

void expect_no_file(const std::vector<std::string>& question) {
  std::error_code ignored;
  for (const std::string& word : question)
    if (const std::string name = traces::file_of(word);
        name == "-" || std::filesystem::exists(name, ignored))
      throw Error(
          fmt::format("the shards belong to a plan that reads {}, and files are named only on "
                      "the command line; give its flags again: 'plan {}'",
                      name, fmt::join(question, " ")));
}

traces::PlanJournal merge_journals(const std::vector<std::string>& paths) {
  GatheredPlans all = gather_journals(paths);
  if (!all.lack.empty()) throw Error(all.lack);
  return std::move(all.whole);
}

JournaledSweep::JournaledSweep(std::vector<std::string> question, SweepFiles files)
    : files_(std::move(files)) {
  if (files_.whole) {
    if (traces::compute_fingerprint(question) == files_.whole->owner.fingerprint) return;
    throw Error(
        "a file that the plan reads has changed since its shards were written; run them "
        "again");
  }
  if (!files_.shard) {
    files_.shard = find_launched_shard();
    launched_ = files_.shard.has_value();
  }
  owner_.shard = files_.shard.value_or(traces::SweepShard{});
  if (owner_.shard.count > 1 || !files_.journal.empty())
    owner_.fingerprint = traces::compute_fingerprint(question);
  owner_.arguments = std::move(question);
}

std::string JournaledSweep::path_of(std::size_t shard) const {
  if (!files_.journal.empty() && !launched_) return files_.journal;
  const std::string stem = files_.journal.empty() ? "plan-" + owner_.fingerprint : files_.journal;
  return fmt::format("{}.{}-of-{}", stem, shard + 1, owner_.shard.count);
}

/// The journal of this shard; without outcomes if there is no file.
traces::PlanJournal JournaledSweep::resume() const {
  const std::string path = path_of(owner_.shard.index);
  std::optional<traces::PlanJournal> known = traces::read_plan_journal(path);
  if (!known) return {owner_, {}};
  const traces::JournalOwner& other = known->owner;
  if (other == owner_) return *std::move(known);
  if (other.arguments == owner_.arguments && other.shard == owner_.shard)
    throw Error(
        fmt::format("{} is of this plan, but a file that it reads has changed since, or "
                    "the program has; give another file, or remove it",
                    path));
  throw Error(
      fmt::format("{} is of another plan: 'plan {}', shard {}/{}; give another file, or remove it",
                  path, fmt::join(other.arguments, " "), other.shard.index + 1, other.shard.count));
}

traces::PlanJournal JournaledSweep::run_shard(const std::vector<Configuration>& configurations,
                                              const MakeEvaluate& evaluate,
                                              SweepOptions options) const {
  traces::PlanJournal journal = resume();
  for (auto& [at, outcome] : journal.outcomes) restore_configuration(outcome, configurations[at]);
  std::vector<std::size_t> left;
  std::vector<Configuration> to_evaluate;
  for (std::size_t at = owner_.shard.index; at < configurations.size(); at += owner_.shard.count)
    if (!journal.outcomes.contains(at)) {
      left.push_back(at);
      to_evaluate.push_back(configurations[at]);
    }
  const std::string path = path_of(owner_.shard.index);
  std::ofstream file = traces::write_plan_journal(path, journal);
  options.record = [&](std::size_t begin, std::span<const Outcome> outcomes) {
    for (const Outcome& outcome : outcomes) traces::add_outcome(file, left[begin++], outcome);
    if (!file.flush())
      throw Error(Fault::kMachine,
                  fmt::format("cannot write {}: {}", path, std::generic_category().message(errno)));
  };
  std::vector<Outcome> outcomes = sweep(to_evaluate, evaluate, options);
  for (std::size_t at = 0; at < left.size(); ++at)
    journal.outcomes[left[at]] = std::move(outcomes[at]);
  return journal;
}

/// Every process tries this at its end; of those that find all shards complete, the one that
/// succeeds in renaming the first journal shows the plan.
std::optional<traces::PlanJournal> JournaledSweep::merge_launched() {
  std::vector<std::string> paths;
  for (std::size_t shard = 0; shard < owner_.shard.count; ++shard) paths.push_back(path_of(shard));
  GatheredPlans all = gather_journals(paths);
  std::error_code taken_already;
  if (all.lack.empty()) std::filesystem::rename(paths[0], paths[0] + ".merged", taken_already);
  is_last_ = all.lack.empty() && !taken_already;
  return is_last_ ? std::optional(std::move(all.whole)) : std::nullopt;
}

std::optional<std::vector<Outcome>> JournaledSweep::run(
    const std::vector<Configuration>& configurations, const MakeEvaluate& evaluate,
    SweepOptions options) {
  if (files_.whole) return complete(*std::move(files_.whole), configurations);
  const traces::SweepShard& shard = owner_.shard;
  if (shard.count == 1 && files_.journal.empty()) return sweep(configurations, evaluate, options);
  owner_.configurations = configurations.size();
  if (shard.index > 0) options.progress = {};  // one bar is enough
  traces::PlanJournal own = run_shard(configurations, evaluate, std::move(options));
  if (shard.count == 1) return complete(std::move(own), configurations);
  if (launched_)
    if (auto whole = merge_launched()) return complete(*std::move(whole), configurations);
  print_message(
      "bubblescope: shard {}/{} is in {}; {}\n", shard.index + 1, shard.count, path_of(shard.index),
      launched_ ? "the last one to finish prints the plan"
                : "'bubblescope plan --merge' and the files of all shards print the plan");
  return {};
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
  for (std::size_t shard = 1; shard < owner_.shard.count; ++shard)
    std::filesystem::remove(path_of(shard), ignored);
}

}  // namespace bubblescope::tools
