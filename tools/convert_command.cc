// convert: a schedule in another format.
#include <fmt/format.h>

#include "sim/ir/swapped_messages.h"
#include "tools/exports.h"
#include "tools/flags/command_flags.h"
#include "tools/predict.h"

namespace bubblescope {

namespace {

constexpr const char* kConvertExample =
    "example: a schedule for PyTorch's runtime, with its sends and receives\n"
    "  bubblescope convert interleaved --pp 4 --vpp 2 -m 8 --profile pytorch-2.15 --fsdp \\\n"
    "      --to pytorch-csv-comms -o schedule.csv\n";

const ScheduleFormat& find_format(const std::string& name) {
  const auto& registry = Registry<ScheduleFormat>::instance();
  if (const ScheduleFormat* format = registry.find(name)) return *format;
  const std::string nearest = registry.nearest(name);
  throw Error("no schedule format is called '" + name + "'" + suggestion(nearest) +
              " ('bubblescope list formats' shows them all)");
}

std::vector<FilePart> write_with_costs(const ScheduleFormat& format, const Schedule& schedule,
                                       const PredictOptions& options) {
  const Program program = lower_or_explain(schedule, options.cost.lower);
  const std::vector<Nanos> durations = price(program, load_models(schedule, options).costs);
  return format.write_priced({schedule, program, durations});
}

/// PyTorch's own deferral does this, and trains with wrong gradients then.
void warn_of_swapped(const Schedule& schedule, Lowering posting) {
  const Problems swapped = find_swapped_messages(schedule, posted_lists(schedule, posting));
  if (swapped.empty()) return;
  fmt::print(stderr,
             "bubblescope: {}: messages are received in another order than they are sent, and "
             "PyTorch computes with the wrong ones: rank {}: {}\n",
             schedule.name, *swapped.front().rank, swapped.front().message);
}

std::vector<FilePart> write(const ScheduleFormat& format, const Schedule& schedule,
                            const PredictOptions& options) {
  if (format.write_priced) return write_with_costs(format, schedule, options);
  // What a runtime would load must be sound; our own formats may also hold work in progress.
  if (format.for_runtimes) lower_or_explain(schedule, {});
  if (format.write_lists) {
    const Lowering posting = options.cost.lower.posting;
    if (posting == Lowering::kDeferred && posts_messages(schedule))
      throw Error(schedule.name +
                  " posts its own messages, which stay where they are; leave --lowering out");
    warn_of_swapped(schedule, posting);
    return {{"", format.write_lists(schedule, {release_of(options.shape.profile), posting})}};
  }
  return {{"", format.write(schedule)}};
}

}  // namespace

int run_convert(const Arguments& arguments) {
  CommandFlags app{"Write a schedule in another format", "bubblescope convert"};
  std::string schedule;
  std::string format;
  std::string output = "-";
  PredictOptions options;
  app.add_option("SCHEDULE", schedule, "a name ('bubblescope list'), a file, or - for stdin")
      ->required();
  app.add_option("--to", format, "the format ('bubblescope list formats')")
      ->required()
      ->type_name("FORMAT");
  app.add_option("-o,--output", output, "the file to write (default: -, stdout)")
      ->type_name("FILE");
  add_predict_options(app, options);
  app.footer(kConvertExample);
  if (!app.parse(arguments)) return 0;
  const ScheduleFormat& to = find_format(format);
  if (output.empty()) throw Error("-o has an empty file name");
  const Schedule loaded = load_schedule(schedule, options);
  const std::vector<FilePart> parts = write(to, loaded, options);
  if (output == "-" && parts.size() > 1)
    throw Error(fmt::format("{} is {} files; give -o PREFIX, and they are PREFIX{} and so on",
                            to.name, parts.size(), parts.front().suffix));
  for (const FilePart& part : parts) write_and_say(output + part.suffix, part.content);
  return 0;
}

}  // namespace bubblescope
