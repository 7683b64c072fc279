// Adds the flag of a lost rank.
#include "sim/ir/error.h"
#include "tools/flags/choice.h"
#include "tools/flags/heading.h"
#include "tools/flags/key_values.h"
#include "tools/flags/options.h"

namespace bubblescope::tools {

namespace {

RankLoss parse_loss(const std::string& text, LossKeys keys) {
  const KeyValues values(text, {"rank", "at", "detect"});
  values.at("rank");
  RankLoss loss;
  loss.lost.rank = *values.integer("rank", 0);
  if (keys == LossKeys::kRank && (values.find("at") || values.find("detect")))
    throw Error("at= and detect= time the step of the loss, which simulate does; leave them out");
  if (const auto at = values.find("at")) loss.at = parse_duration(*at);
  if (const auto detection = values.find("detect")) loss.detection = parse_duration(*detection);
  if (loss.detection > 0 && !loss.at)
    throw Error("detect= is the time from the loss until it is known; give at= too");
  return loss;
}

}  // namespace

void add_loss_option(CommandFlags& app, PredictOptions& options, LossKeys keys) {
  const Heading heading(app, "Shape");
  add_parsed(app,
             {"--lose",
              "a rank that one of --replicas pipelines has lost; the others run its micro-batches",
              keys == LossKeys::kRank ? "rank=R" : "rank=R[,at=TIME][,detect=TIME]"},
             [&options, keys](const std::string& text) { options.loss = parse_loss(text, keys); });
}

PredictOptions take_replicas(PredictOptions options) {
  if (!options.loss) return options;
  std::vector<std::int32_t>& given = options.shape.replicas;
  if (given.size() > 1)
    throw Error("--lose has whole pipelines as replicas; give one number as --replicas");
  if (given.empty() || given.front() < 2)
    throw Error(
        "--lose needs other replicas of the pipeline, which run the lost rank's micro-batches; "
        "give their number as --replicas, at least 2");
  options.loss->lost.replicas = given.front();
  given.clear();
  return options;
}

}  // namespace bubblescope::tools
