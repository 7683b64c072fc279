// Reads workloads, and prints what does not fit together.
#include "tools/commands/check_workload_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/ir/plain_text.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/options.h"
#include "tools/flags/output_format.h"
#include "tools/print.h"
#include "tools/terminal.h"
#include "traces/files/file.h"
#include "traces/json/json_writer.h"
#include "traces/workloads/check_workload.h"
#include "traces/workloads/workload.h"

namespace bubblescope::tools {

namespace {

constexpr std::size_t kMaxShown = 20;  ///< problems in the text; json has all

constexpr const char* kExample =
    "example: the traces of all ranks, before a simulator runs them\n"
    "  bubblescope check step.*.et\n"
    "exit status: 1 if messages or collectives do not fit together, or an order hangs with\n"
    "buffered messages (--p2p-mode rendezvous: with messages that wait for their receives;\n"
    "--all-modes: with either)\n";

struct WorkloadFlags {
  std::vector<std::string> files;
  OutputFormat format = OutputFormat::kText;
  std::string mode = "eager";
  bool all_modes = false;
};

std::vector<traces::Workload> read_workloads(const std::vector<std::string>& files) {
  std::vector<traces::Workload> workloads;
  std::vector<traces::ChakraFile> chakra;
  for (const std::string& file : files) {
    if (traces::is_chakra_name(file))
      chakra.push_back({file, traces::read_file(file)});
    else if (traces::is_goal_file(file))
      workloads.push_back(traces::parse_goal(traces::read_file(file), file));
    else
      throw Error(file + " is not a workload; check workloads and schedules one after the other");
  }
  if (!chakra.empty()) workloads.push_back(traces::parse_chakra(chakra));
  return workloads;
}

bool is_sound(const traces::WorkloadVerdict& verdict, const WorkloadFlags& flags) {
  const bool eager_counts = flags.mode == "eager" || flags.all_modes;
  const bool rendezvous_counts = flags.mode == "rendezvous" || flags.all_modes;
  return verdict.problems.empty() && !(eager_counts && !verdict.eager_hang.empty()) &&
         !(rendezvous_counts && !verdict.rendezvous_hang.empty());
}

void print_text(const traces::Workload& workload, const traces::WorkloadVerdict& verdict) {
  print_folded(
      "{}: {}, {}, {}, {}{}{}\n", escape_line(workload.name), workload.format,
      counted(std::ssize(workload.ranks), "rank"),
      counted(static_cast<std::int64_t>(verdict.jobs), "job"),
      counted(static_cast<std::int64_t>(verdict.messages), "message"),
      verdict.collectives == 0
          ? ""
          : ", " + counted(static_cast<std::int64_t>(verdict.collectives), "collective"),
      verdict.problems.empty() ? "" : ": " + counted(std::ssize(verdict.problems), "problem"));
  for (std::size_t at = 0; at < std::min(verdict.problems.size(), kMaxShown); ++at)
    print_folded("  rank {}: {}\n", *verdict.problems[at].rank, to_string(verdict.problems[at]));
  if (verdict.problems.size() > kMaxShown)
    print_folded("  ... and {} more (--format json has all)\n",
                 verdict.problems.size() - kMaxShown);
  for (const auto& [mode, hang] :
       {std::pair("eager", &verdict.eager_hang), std::pair("rendezvous", &verdict.rendezvous_hang)})
    print_folded("  {:<16} {}\n", mode,
                 !hang->empty()           ? "HANGS: " + *hang
                 : verdict.wildcards == 0 ? "cannot hang"
                                          : "no hang found");
  if (verdict.shared_matches > 0)
    print_folded(
        "  {} share source, destination and tag with others: the n-th send of the file is taken to "
        "match the n-th receive\n",
        counted(verdict.shared_matches, "message"));
  if (verdict.wildcards > 0)
    print_folded(
        "  {} from any rank or with any tag: which send they get depends on "
        "times, so what waits for them is not checked\n",
        counted(static_cast<std::int64_t>(verdict.wildcards), "receive"));
}

void write_json(traces::JsonWriter& json, const traces::Workload& workload,
                const traces::WorkloadVerdict& verdict, bool sound) {
  json.begin_object().member("format", "bubblescope-workload-check/1");
  json.member("workload", workload.name).member("kind", workload.format);
  json.member("ranks", workload.ranks.size()).member("jobs", verdict.jobs);
  json.member("messages", verdict.messages).member("collectives", verdict.collectives);
  json.member("sound", sound).key("problems").begin_array();
  for (const Problem& problem : verdict.problems) {
    json.begin_object().member_or_null("rank", problem.rank);
    json.member_or_null("position", problem.position).member("message", to_string(problem));
    json.end_object();
  }
  json.end_array().key("hang").begin_object();
  json.member("eager", !verdict.eager_hang.empty());
  json.member("rendezvous", !verdict.rendezvous_hang.empty()).end_object();
  json.key("hang_cycle").begin_object();
  if (!verdict.eager_hang.empty()) json.member("eager", verdict.eager_hang);
  if (!verdict.rendezvous_hang.empty()) json.member("rendezvous", verdict.rendezvous_hang);
  json.end_object().member("shared_matches", verdict.shared_matches);
  json.member("wildcard_receives", verdict.wildcards).end_object();
}

}  // namespace

bool names_workload(const Arguments& arguments) {
  return std::ranges::any_of(arguments, [](const std::string& word) {
    return !word.starts_with("-") && (traces::is_chakra_name(word) || traces::is_goal_file(word));
  });
}

namespace {

/// Refuses flags with which `check` looks at schedules.
void expect_no_schedule_flags(const Arguments& arguments, const CommandFlags& of_schedules,
                              const CommandFlags& of_workloads) {
  for (const std::string& argument : arguments) {
    const std::string flag = argument.substr(0, argument.find('='));
    if (flag.size() > 1 && flag.starts_with('-') && !of_workloads.knows(flag) &&
        of_schedules.knows(flag))
      throw Error(flag +
                  " is for schedules, and this file is a workload of a simulator; leave it out");
  }
}

}  // namespace

int check_workload_files(const Arguments& arguments, const CommandFlags& of_schedules) {
  CommandFlags app{"Do the ranks of a workload fit together, can it hang", "bubblescope check"};
  WorkloadFlags flags;
  app.add_option("FILE", flags.files, "GOAL text, or the files of a Chakra set")->required();
  add_format_option(app, flags.format, {OutputFormat::kText, OutputFormat::kJson});
  app.add_option("--p2p-mode", flags.mode,
                 "the mode that must not hang: eager (default) or rendezvous")
      ->type_name("MODE");
  app.add_flag("--all-modes", flags.all_modes, "exit 1 if it hangs in either mode");
  app.footer(kExample);
  expect_no_schedule_flags(arguments, of_schedules, app);
  if (!app.parse(arguments)) return 0;
  if (flags.mode != "eager" && flags.mode != "rendezvous")
    throw Error("--p2p-mode " + flags.mode +
                ": what a workload's simulator knows is eager and rendezvous");
  bool sound = true;
  std::string text;
  traces::JsonWriter json(text, {.ascii = true});
  const std::vector<traces::Workload> workloads = read_workloads(flags.files);
  if (workloads.size() > 1) json.begin_array();
  for (const traces::Workload& workload : workloads) {
    const traces::WorkloadVerdict verdict = traces::check_workload(workload);
    if (flags.format == OutputFormat::kJson)
      write_json(json, workload, verdict, is_sound(verdict, flags));
    else
      print_text(workload, verdict);
    sound = sound && is_sound(verdict, flags);
  }
  if (workloads.size() > 1) json.end_array();
  if (flags.format == OutputFormat::kJson) print_output("{}\n", text);
  return sound ? 0 : 1;
}

}  // namespace bubblescope::tools
