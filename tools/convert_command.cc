// convert: a schedule in another format.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "tools/exports.h"
#include "tools/load_order.h"
#include "tools/predict.h"

namespace bubblescope {

namespace {

constexpr const char* kExample =
    "example: a schedule for PyTorch's runtime, with its sends and receives\n"
    "  bubblescope convert interleaved --pp 4 --vpp 2 -m 8 --profile pytorch \\\n"
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

std::vector<FilePart> write(const ScheduleFormat& format, const Schedule& schedule,
                            const PredictOptions& options) {
  if (format.write_priced) return write_with_costs(format, schedule, options);
  // What a runtime would load must be sound; our own formats may also hold work in progress.
  if (format.for_runtimes) lower_or_explain(schedule, {});
  return {{"", format.write(schedule)}};
}

}  // namespace

int run_convert(const Arguments& arguments) {
  CLI::App app{"Write a schedule in another format", "bubblescope convert"};
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
  app.footer(kExample);
  if (!parse(app, arguments)) return 0;
  const ScheduleFormat& to = find_format(format);
  if (output.empty()) throw Error("-o has an empty file name");
  const Schedule loaded =
      to.write_priced ? load_schedule(schedule, options) : load_order(schedule, options);
  const std::vector<FilePart> parts = write(to, loaded, options);
  if (output == "-" && parts.size() > 1)
    throw Error(fmt::format("{} is {} files; give -o PREFIX, and they are PREFIX{} and so on",
                            to.name, parts.size(), parts.front().suffix));
  for (const FilePart& part : parts) write_and_say(output + part.suffix, part.content);
  return 0;
}

}  // namespace bubblescope
