// Reads and writes noise.
#include "traces/costs/noise_entry.h"

#include <array>

namespace bubblescope::traces {

namespace {

constexpr double kMaxFactor = 1000;

struct SigmaKey {
  const char* key;
  double Noise::*sigma;
};

constexpr std::array<SigmaKey, 5> kSigmas{{{"jitter", &Noise::op_jitter},
                                           {"p2p_jitter", &Noise::message_jitter},
                                           {"rank_jitter", &Noise::rank_jitter},
                                           {"length_jitter", &Noise::sequence_length_jitter},
                                           {"step_jitter", &Noise::step_jitter}}};

double read_fraction(const JsonNode& node) {
  const std::optional<double> value = node.number();
  if (!value || *value < 0 || *value > 1) node.refuse("must be a fraction from 0 to 1");
  return *value;
}

Stragglers read_stragglers(const JsonNode& node) {
  node.expect_keys({"probability", "factor", "of"});
  Stragglers stragglers;
  const JsonNode probability = node.at("probability");
  const JsonNode factor = node.at("factor");
  stragglers.probability = read_fraction(probability);
  stragglers.factor = factor.positive_number();
  if (stragglers.factor > kMaxFactor) factor.refuse("must be at most 1000");
  const auto of = node.find("of");
  if (!of) return stragglers;
  if (of->text() != "op" && of->text() != "rank") of->refuse("must be \"op\" or \"rank\"");
  stragglers.whole_rank = of->text() == "rank";
  return stragglers;
}

}  // namespace

Noise read_noise(const JsonNode& node) {
  node.expect_keys({"jitter", "p2p_jitter", "rank_jitter", "length_jitter", "step_jitter", "shape",
                    "straggler"});
  Noise noise;
  for (const SigmaKey& entry : kSigmas)
    if (const auto sigma = node.find(entry.key)) noise.*entry.sigma = read_fraction(*sigma);
  if (const auto shape = node.find("shape")) {
    if (shape->text() != "lognormal" && shape->text() != "gaussian")
      shape->refuse("must be \"lognormal\" or \"gaussian\"");
    if (shape->text() == "gaussian") noise.distribution = Distribution::kGaussian;
  }
  if (const auto straggler = node.find("straggler")) noise.stragglers = read_stragglers(*straggler);
  return noise;
}

void write_noise_entry(JsonWriter& json, const Noise& noise) {
  json.begin_object();
  for (const SigmaKey& entry : kSigmas)
    if (noise.*entry.sigma > 0) json.key(entry.key).fixed(noise.*entry.sigma, 6);
  json.member("shape", noise.distribution == Distribution::kLognormal ? "lognormal" : "gaussian");
  if (noise.stragglers.probability > 0) {
    json.key("straggler").begin_object();
    json.key("probability").fixed(noise.stragglers.probability, 6);
    json.key("factor").fixed(noise.stragglers.factor, 6);
    json.member("of", noise.stragglers.whole_rank ? "rank" : "op").end_object();
  }
  json.end_object();
}

}  // namespace bubblescope::traces
