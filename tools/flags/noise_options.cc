// Turns arguments into noise.
#include "tools/flags/noise_options.h"

#include <string>

#include "sim/ir/error.h"
#include "tools/flags/choice.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/heading.h"
#include "tools/flags/key_values.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

constexpr const char* kHeading = "Noise";
constexpr const char* kNoiseHeading = "Which noise, and how much of it";
constexpr const char* kShape = "--jitter-shape";
constexpr double kMaxSigma = 1;
constexpr double kMaxFactor = 1000;

void add_sigma(CommandFlags& app, NoiseOptions& options, double Noise::*sigma, Flag flag) {
  flag.type = "PERCENT";
  add_parsed(app, flag, [&options, sigma](const std::string& text) {
    options.noise.*sigma = parse_fraction(text, kMaxSigma);
    options.is_given = true;
  });
}

double read_factor(const KeyValues& values) {
  values.at("factor");
  const double factor = *values.positive_number("factor");
  if (factor > kMaxFactor) throw Error("factor: must be at most 1000");
  return factor;
}

SlowRank parse_slow_rank(const std::string& text) {
  const KeyValues values(text, {"rank", "factor"});
  values.at("rank");
  return {*values.integer("rank", 0), read_factor(values)};
}

Stragglers parse_stragglers(const std::string& text) {
  const KeyValues values(text, {"probability", "factor", "of"});
  Stragglers stragglers;
  stragglers.probability = parse_fraction(values.at("probability"), 1);
  stragglers.factor = read_factor(values);
  const std::string of = values.find("of").value_or("op");
  if (of != "op" && of != "rank") throw Error("of=" + of + ": must be op or rank");
  stragglers.whole_rank = of == "rank";
  return stragglers;
}

void add_sources(CommandFlags& app, NoiseOptions& options) {
  const Heading heading(app, kHeading);
  add_sigma(app, options, &Noise::op_jitter,
            {"--jitter", "sigma of every op's duration, such as 5%"});
  add_sigma(app, options, &Noise::message_jitter,
            {"--p2p-jitter", "sigma of message times (with --network, of latencies)"});
  add_sigma(app, options, &Noise::rank_jitter,
            {"--rank-jitter", "sigma of a rank's speed in a step"});
  add_sigma(app, options, &Noise::sequence_length_jitter,
            {"--length-jitter", "sigma of a micro-batch's sequence length; its ops scale with it"});
  app.accept_old_name("--ragged", "--length-jitter");
  add_sigma(app, options, &Noise::step_jitter,
            {"--step-jitter", "sigma of a step's speed, on all ranks"});
  add_repeated(
      app,
      {"--slow", "a rank whose ops take longer; may be given several times", "rank=R,factor=X"},
      [&options](const std::string& text) { options.slow_ranks.push_back(parse_slow_rank(text)); });
  add_parsed(app,
             {"--straggler", "random stragglers: an op, or a rank for a whole step, takes longer",
              "probability=P,factor=X[,of=op|rank]"},
             [&options](const std::string& text) {
               options.noise.stragglers = parse_stragglers(text);
               options.is_given = true;
             });
  app.add_flag("--sensitivity", options.sensitivity,
               "increase of the step when a rank or a kind of op takes 1 % longer");
}

}  // namespace

void add_noise_options(CommandFlags& app, NoiseOptions& options) {
  add_sources(app, options);
  const Heading heading(app, kNoiseHeading);
  Noise& noise = options.noise;
  add_choice<Distribution>(
      app, {kShape, "distribution of jitter (default lognormal)"},
      {{"lognormal", Distribution::kLognormal}, {"gaussian", Distribution::kGaussian}},
      [&noise](Distribution distribution) { noise.distribution = distribution; });
  app.add_option("--seeds", options.seeds, "number of simulated steps under noise (default 1000)")
      ->check(InRange(1, 1'000'000));
  app.add_option("--noise-seed", noise.seed, "seed of the noise (default 1)");
}

void warn_without_noise(const CommandFlags& app, const NoiseOptions& options,
                        const std::optional<Noise>& of_costs) {
  if (options.noise.is_random()) return;
  if (!of_costs || !of_costs->is_random())
    return warn_of_unused(app, kNoiseHeading, "without noise, such as --jitter 5%");
  if (app.count(kShape) > 0)
    print_message(
        "bubblescope: {} changes nothing: the noise is that of the cost file, which has a shape of "
        "its own\n",
        kShape);
}

}  // namespace bubblescope::tools
