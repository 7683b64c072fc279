// list: prints everything known, one line each.
#include <fmt/format.h>

#include <algorithm>

#include "exec/runtime/backend.h"
#include "sim/ir/nearest_names.h"
#include "sim/model/gpu.h"
#include "sim/model/runtime.h"
#include "sim/model/transformer.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/field_names.h"
#include "tools/flags/options.h"
#include "tools/flags/output_format.h"
#include "tools/print.h"
#include "tools/terminal.h"
#include "traces/files/format.h"
#include "traces/json/json_writer.h"

namespace bubblescope::tools {

namespace {

struct Entry {
  std::string name;
  std::vector<std::string> aliases;
  std::string summary;
  std::string source;
};

std::vector<Entry> list_all_schedules() {
  std::vector<Entry> entries;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    entries.push_back({def.name, def.aliases, def.summary, def.source});
  return entries;
}

std::vector<Entry> list_formats() {
  std::vector<Entry> entries;
  for (const traces::ScheduleFormat& format : Registry<traces::ScheduleFormat>::instance().all())
    entries.push_back({format.name, format.aliases,
                       (format.read ? "schedule: " : "schedule, only written: ") + format.summary,
                       ""});
  for (const traces::TimelineFormat& format : Registry<traces::TimelineFormat>::instance().all())
    entries.push_back({format.name, format.aliases,
                       "timeline, --" + format.name + " FILE: " + format.summary, ""});
  return entries;
}

const char* describe(Profile profile) {
  switch (profile) {
    case Profile::kNone: return "";
    case Profile::kPytorch: return "PyTorch 2.6 to 2.14, whose lists have no waits";
    case Profile::kPytorch215: return "PyTorch since 2.15, whose lists wait for what they start";
    case Profile::kMegatron: return "Megatron-LM, with groups of micro-batches per chunk";
    case Profile::kDeepspeed: return "DeepSpeed, with 1f1b and forward-only";
    case Profile::kColossalai: return "ColossalAI, with groups of as many micro-batches as ranks";
    case Profile::kDeepseek: return "DeepSeek's DualPipe and DualPipeV";
  }
  return "";
}

std::vector<Entry> list_profiles() {
  std::vector<Entry> entries;
  for (const Named<Profile>& profile : kProfiles)
    entries.push_back({std::string(profile.name), {}, describe(profile.choice), ""});
  return entries;
}

std::vector<Entry> list_modes() {
  std::vector<Entry> entries;
  for (const Named<P2pMode>& mode : kP2pModes)
    entries.push_back({std::string(mode.name), {}, std::string(mode.summary), ""});
  return entries;
}

std::vector<Entry> list_backends() {
  std::vector<Entry> entries;
  for (const exec::BackendDef& def : Registry<exec::BackendDef>::instance().all())
    entries.push_back({def.name, def.aliases, def.summary, ""});
  return entries;
}

/// Prints models and devices, each with the source of its numbers.
template <class Def>
std::vector<Entry> list_known() {
  std::vector<Entry> entries;
  for (const Def& def : Registry<Def>::instance().all())
    entries.push_back({def.name, def.aliases, def.summary, def.source});
  return entries;
}

std::vector<Entry> entries_of(const std::string& what) {
  if (what == "schedules") return list_all_schedules();
  if (what == "formats") return list_formats();
  if (what == "profiles") return list_profiles();
  if (what == "modes") return list_modes();
  if (what == "backends") return list_backends();
  if (what == "models") return list_known<ModelDef>();
  if (what == "gpus") return list_known<GpuDef>();
  if (what == "runtimes") return list_known<RuntimeDef>();
  const std::vector<std::string> known{"schedules", "formats", "profiles", "modes",
                                       "models",    "gpus",    "runtimes", "backends"};
  const bool is_singular = std::find(known.begin(), known.end(), what + "s") != known.end();
  const std::vector<std::string> nearest =
      is_singular ? std::vector{what + "s"} : nearest_names(what, known);
  throw Error(
      "list shows schedules, formats, profiles, modes, models, gpus, runtimes or backends, not '" +
      what + "'" + suggestion(nearest));
}

void print_json(const std::vector<Entry>& entries) {
  std::string text;
  traces::JsonWriter json(text, {.indented = true, .ascii = true});
  json.begin_array();
  for (const Entry& entry : entries) {
    json.begin_object().member("name", entry.name).array("aliases", entry.aliases);
    json.member("summary", entry.summary);
    if (!entry.source.empty()) json.member("source", entry.source);
    json.end_object();
  }
  json.end_array();
  print_output("{}\n", text);
}

void print_text(const std::vector<Entry>& entries) {
  std::size_t width = 0;
  for (const Entry& entry : entries) width = std::max(width, entry.name.size());
  for (const Entry& entry : entries) {
    print_folded("{:<{}}  {}\n", entry.name, width, entry.summary);
    if (!entry.aliases.empty())
      print_folded("{:<{}}    also: {}\n", "", width, fmt::join(entry.aliases, ", "));
    if (!entry.source.empty()) print_folded("{:<{}}    from: {}\n", "", width, entry.source);
  }
}

}  // namespace

int run_list(const Arguments& arguments) {
  CommandFlags app{"What is known, one line each", "bubblescope list"};
  std::string what = "schedules";
  OutputFormat format = OutputFormat::kText;
  app.add_option("WHAT", what,
                 "schedules, formats, profiles, modes, models, gpus, runtimes or backends");
  add_format_option(app, format, {OutputFormat::kText, OutputFormat::kJson, OutputFormat::kNames});
  app.footer(
      "example: every schedule name, for a script\n  bubblescope list schedules --format names\n");
  if (!app.parse(arguments)) return 0;
  std::vector<Entry> entries = entries_of(what);
  for (Entry& entry : entries) entry.summary = name_flags(entry.summary);
  if (format == OutputFormat::kJson) {
    print_json(entries);
  } else if (format == OutputFormat::kNames) {
    for (const Entry& entry : entries) print_output("{}\n", entry.name);
  } else {
    print_text(entries);
  }
  return 0;
}

}  // namespace bubblescope::tools
