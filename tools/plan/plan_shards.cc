// Reads launchers' environments, and writes and merges journals.
#include "tools/plan/plan_shards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
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

/// The shard of a launcher's process, if both variables are set.
std::optional<traces::SweepShard> shard_of(const exec::Launcher& launcher) {
  const auto index = environment_number(launcher.rank);
  const auto count = environment_number(launcher.count);
  if (!index || !count) return {};
  if (*index >= *count)
    throw Error(fmt::format("{}={} does not go with {}={}; unset them, or give --shard K/N",
                            launcher.rank, *index, launcher.count, *count));
  return traces::SweepShard{*index, *count};
}

/// The shard of a task of a job array. Arrays may begin at any index and have a stride.
std::optional<traces::SweepShard> shard_of_array() {
  const auto task = environment_number("SLURM_ARRAY_TASK_ID");
  const auto count = environment_number("SLURM_ARRAY_TASK_COUNT");
  if (!task || !count) return {};
  const std::size_t first = environment_number("SLURM_ARRAY_TASK_MIN").value_or(0);
  const std::size_t step = environment_number("SLURM_ARRAY_TASK_STEP").value_or(1);
  const std::size_t index = *task < first || step == 0 ? *count : (*task - first) / step;
  if (index >= *count)
    throw Error(
        fmt::format("SLURM_ARRAY_TASK_ID={} is not among SLURM_ARRAY_TASK_COUNT={} tasks "
                    "from SLURM_ARRAY_TASK_MIN={}; give --shard K/N",
                    *task, *count, first));
  return traces::SweepShard{index, *count};
}

enum class FlagValues : std::uint8_t { kNone, kOne, kSeveral };

/// A flag that controls how a sweep is run or shown and is not part of its question.
struct RunFlag {
  std::string_view name;
  FlagValues values;
};
constexpr std::array<RunFlag, 8> kRunFlags{{{"--shard", FlagValues::kOne},
                                            {"--resume", FlagValues::kOne},
                                            {"--merge", FlagValues::kSeveral},
                                            {"--threads", FlagValues::kOne},
                                            {"--format", FlagValues::kOne},
                                            {"--top", FlagValues::kOne},
                                            {"--svg", FlagValues::kOne},
                                            {"--wide", FlagValues::kNone}}};

/// Adds the configurations to outcomes from journals, which contain only the resulting shapes.
std::vector<Outcome> complete(traces::PlanJournal journal,
                              const std::vector<Configuration>& configurations) {
  if (journal.owner.configurations != configurations.size())
    throw Error("these are results of another sweep; run its shards again");
  if (journal.outcomes.size() != configurations.size())
    throw Error("some results of the sweep are missing; run its shards again");
  std::vector<Outcome> all;
  for (auto& [at, kept] : journal.outcomes) {
    Outcome& outcome = all.emplace_back(std::move(kept));
    if (!outcome.plan) continue;
    const Shape shape = outcome.plan->configuration.shape;
    outcome.plan->configuration = configurations[at];
    outcome.plan->configuration.shape = shape;
  }
  return all;
}

/// The number of a shard's configurations without outcome.
std::size_t missing_of(const traces::PlanJournal& journal, const traces::SweepShard& shard) {
  const std::size_t all = journal.owner.configurations;
  const std::size_t own = shard.index < all ? (all - shard.index - 1) / shard.count + 1 : 0;
  std::size_t known = 0;
  for (const auto& [at, outcome] : journal.outcomes) known += at % shard.count == shard.index;
  return own - known;
}

/// Throws Error for input from stdin, because it cannot be checked again.
void expect_files(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments)
    if (argument == "-" || argument.ends_with("=-"))
      throw Error("a resumed or sharded plan must read its input again: give a file instead of -");
}

traces::PlanJournal with_part(traces::PlanJournal whole, traces::PlanJournal part) {
  for (auto& [at, outcome] : part.outcomes) whole.outcomes[at] = std::move(outcome);
  return whole;
}

}  // namespace

traces::SweepShard parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto index = number_of(std::string_view(text).substr(0, slash));
  const auto count = slash == std::string::npos
                         ? std::nullopt
                         : number_of(std::string_view(text).substr(slash + 1));
  if (!index || !count || *index < 1 || *index > *count)
    throw Error("'" + text + "' is not a shard; write 1/4 to 4/4 for four shards");
  return {*index - 1, *count};
}

std::optional<traces::SweepShard> find_launched_shard() {
  std::optional<traces::SweepShard> shard;
  for (const exec::Launcher& launcher : {exec::kMpiruns[0], exec::kMpiruns[1], exec::kSrun})
    if (!shard) shard = shard_of(launcher);
  if (const std::optional<traces::SweepShard> array = shard_of_array()) {
    const traces::SweepShard process = shard.value_or(traces::SweepShard{});
    shard = traces::SweepShard{array->index * process.count + process.index,
                               array->count * process.count};
  }
  if (shard && shard->count == 1) return {};
  return shard;
}

std::vector<std::string> extract_question(const std::vector<std::string>& arguments) {
  std::vector<std::string> question;
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    const std::string& argument = arguments[at];
    const std::string flag = argument.substr(0, argument.find('='));
    const auto known = std::find_if(kRunFlags.begin(), kRunFlags.end(),
                                    [&](const RunFlag& run) { return run.name == flag; });
    if (known == kRunFlags.end()) {
      question.push_back(argument);
      continue;
    }
    if (flag != argument || known->values == FlagValues::kNone) continue;
    const bool takes_several = known->values == FlagValues::kSeveral;
    for (bool first = true; at + 1 < arguments.size() && (first || takes_several); first = false) {
      if (takes_several && arguments[at + 1].starts_with("-")) break;
      ++at;
    }
  }
  return question;
}

void expect_no_file(const std::vector<std::string>& question) {
  std::error_code ignored;
  for (const std::string& argument : question) {
    const std::string name = argument.substr(argument.find('=') + 1);
    if (name == "-" || std::filesystem::exists(name, ignored))
      throw Error(
          fmt::format("the shards belong to a plan that reads {}, and files are named only on "
                      "the command line; give its flags again: 'plan {}'",
                      name, fmt::join(question, " ")));
  }
}

traces::PlanJournal merge_journals(const std::vector<std::string>& paths) {
  std::optional<traces::PlanJournal> whole;
  std::vector<bool> seen;
  for (const std::string& path : paths) {
    std::optional<traces::PlanJournal> part = traces::read_plan_journal(path);
    if (!part) throw Error(path + " is not there, or holds no results; run its shard again");
    const traces::SweepShard shard = part->owner.shard;
    if (const std::size_t missing = missing_of(*part, shard); missing > 0)
      throw Error(
          fmt::format("{} lacks {} of its configurations; run its shard again, it resumes "
                      "from there",
                      path, missing));
    if (!whole) {
      whole = traces::PlanJournal{part->owner, {}};
      seen.resize(shard.count, false);
    }
    whole->owner.shard = shard;
    if (part->owner != whole->owner || shard.count != seen.size())
      throw Error(fmt::format("{} is of another plan than {}: 'plan {}'", path, paths[0],
                              fmt::join(part->owner.arguments, " ")));
    seen.at(shard.index) = true;
    whole = with_part(*std::move(whole), *std::move(part));
  }
  if (!whole) throw Error("--merge needs the files of all shards");
  for (std::size_t index = 0; index < seen.size(); ++index)
    if (!seen[index])
      throw Error(
          fmt::format("shard {}/{} is missing; give its file, too", index + 1, seen.size()));
  whole->owner.shard = {};
  return *std::move(whole);
}

JournaledSweep::JournaledSweep(std::vector<std::string> arguments, SweepFiles files)
    : files_(std::move(files)) {
  if (files_.whole) {
    owner_ = files_.whole->owner;
    if (traces::compute_fingerprint(arguments) != owner_.fingerprint)
      throw Error(
          "a file that the plan reads has changed since its shards were written; run them "
          "again");
    return;
  }
  if (!files_.shard) {
    files_.shard = find_launched_shard();
    launched_ = files_.shard.has_value();
  }
  owner_.shard = files_.shard.value_or(traces::SweepShard{});
  const bool keeps = owner_.shard.count > 1 || !files_.journal.empty();
  if (keeps) {
    expect_files(arguments);
    owner_.fingerprint = traces::compute_fingerprint(arguments);
  }
  owner_.arguments = std::move(arguments);
}

std::string JournaledSweep::path_of(const traces::SweepShard& shard) const {
  if (!files_.journal.empty() && !launched_) return files_.journal;
  const std::string stem = files_.journal.empty() ? "plan-" + owner_.fingerprint : files_.journal;
  return fmt::format("{}.{}-of-{}", stem, shard.index + 1, shard.count);
}

/// Returns the journal of a shard; its outcomes are empty if there is no file.
traces::PlanJournal JournaledSweep::journal_of(const traces::SweepShard& shard) const {
  traces::PlanJournal empty{owner_, {}};
  empty.owner.shard = shard;
  const std::string path = path_of(shard);
  std::optional<traces::PlanJournal> known = traces::read_plan_journal(path);
  if (!known) return empty;
  if (known->owner.arguments == owner_.arguments && known->owner.shard == shard &&
      known->owner.fingerprint != owner_.fingerprint)
    throw Error(
        fmt::format("{} is of this plan, but a file that it reads has changed since, or "
                    "the program has; give another file, or remove it",
                    path));
  if (known->owner != empty.owner)
    throw Error(
        fmt::format("{} is of another plan: 'plan {}', shard {}/{}; give another file, or "
                    "remove it",
                    path, fmt::join(known->owner.arguments, " "), known->owner.shard.index + 1,
                    known->owner.shard.count));
  return *std::move(known);
}

traces::PlanJournal JournaledSweep::run_own_shard(const std::vector<Configuration>& configurations,
                                                  const MakeEvaluate& evaluate,
                                                  SweepOptions options) const {
  traces::PlanJournal journal = journal_of(owner_.shard);
  std::vector<std::size_t> left;
  std::vector<Configuration> to_evaluate;
  for (std::size_t at = owner_.shard.index; at < configurations.size(); at += owner_.shard.count)
    if (!journal.outcomes.contains(at)) left.push_back(at);
  for (const std::size_t at : left) to_evaluate.push_back(configurations[at]);
  traces::PlanJournalWriter writer(path_of(owner_.shard), journal);
  options.record = [&](std::size_t begin, std::span<const Outcome> outcomes) {
    for (std::size_t at = 0; at < outcomes.size(); ++at) writer.add(left[begin + at], outcomes[at]);
    writer.flush();
  };
  std::vector<Outcome> outcomes = sweep(to_evaluate, evaluate, options);
  for (std::size_t at = 0; at < left.size(); ++at)
    journal.outcomes[left[at]] = std::move(outcomes[at]);
  return journal;
}

/// Merges all shards if they are complete. Every process tries this at its end; of those that find
/// all shards complete, the one that succeeds in renaming the first journal shows the plan.
std::optional<traces::PlanJournal> JournaledSweep::merge_shards() const {
  traces::PlanJournal whole{owner_, {}};
  for (traces::SweepShard shard = {0, owner_.shard.count}; shard.index < shard.count;
       ++shard.index) {
    traces::PlanJournal part = journal_of(shard);
    if (missing_of(part, shard) > 0) return {};
    whole = with_part(std::move(whole), std::move(part));
  }
  const std::string first = path_of({0, owner_.shard.count});
  std::error_code taken_already;
  std::filesystem::rename(first, first + ".merged", taken_already);
  if (taken_already) return {};
  return whole;
}

std::optional<std::vector<Outcome>> JournaledSweep::run(
    const std::vector<Configuration>& configurations, const MakeEvaluate& evaluate,
    SweepOptions options) {
  if (files_.whole) return complete(*std::move(files_.whole), configurations);
  owner_.configurations = configurations.size();
  const traces::SweepShard& shard = owner_.shard;
  if (shard.count == 1 && files_.journal.empty()) return sweep(configurations, evaluate, options);
  if (shard.index > 0) options.progress = {};  // one bar is enough
  traces::PlanJournal own = run_own_shard(configurations, evaluate, std::move(options));
  if (shard.count == 1) return complete(std::move(own), configurations);
  if (launched_)
    if (std::optional<traces::PlanJournal> whole = merge_shards()) {
      is_last_ = true;
      return complete(*std::move(whole), configurations);
    }
  print_message(
      "bubblescope: shard {}/{} is in {}; {}\n", shard.index + 1, shard.count, path_of(shard),
      launched_ ? "the last one to finish prints the plan"
                : "'bubblescope plan --merge' and the files of all shards print the plan");
  return {};
}

void JournaledSweep::finish() const {
  if (!is_last_) return;
  const std::string first = path_of({0, owner_.shard.count});
  std::error_code ignored;
  // If the plan cannot be written, its journals must remain so that it can be printed again.
  if (std::fflush(stdout) != 0) {
    std::filesystem::rename(first + ".merged", first, ignored);
    throw Error(Fault::kMachine, "the plan cannot be written; its shards are kept, run it again");
  }
  std::filesystem::remove(first + ".merged", ignored);
  for (traces::SweepShard shard = {1, owner_.shard.count}; shard.index < shard.count; ++shard.index)
    std::filesystem::remove(path_of(shard), ignored);
}

}  // namespace bubblescope::tools
