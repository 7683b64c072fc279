// Parts of a model's ops: they add up to the whole, and pairs hide what they can.
#include "sim/model/model_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/ir/lower.h"
#include "sim/model/runtime.h"
#include "sim/model/schedule_def.h"
#include "sim/predict/predict.h"
#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

ModelOnDevices on_devices(const char* model, const char* runtime = "megatron") {
  ModelOnDevices on;
  on.model = Registry<ModelDef>::instance().find(model)->model;
  on.gpu = Registry<GpuDef>::instance().find("h100")->gpu;
  on.parallel.sequence = on.model.sequence;
  const RuntimeDef& def = *Registry<RuntimeDef>::instance().find(runtime);
  on.assumptions = def.assumptions;
  on.parallel.zero_stage = def.zero_stage;
  on.parallel.pytorch = def.pytorch;
  return on;
}

/// Eight data ranks, so that weights that are sharded are gathered; and experts over as many.
ModelOnDevices spread_out(ModelOnDevices on) {
  on.parallel.tensor = 2;
  on.parallel.context = 2;
  on.parallel.data = 8;
  if (on.model.experts) on.parallel.expert = 8;
  return on;
}

Schedule build(const char* name, std::int32_t ranks, std::int32_t microbatches,
               std::int32_t slices = 1) {
  ScheduleRequest request;
  const ScheduleDef& def = find_schedule(name);
  request.shape.ranks = ranks;
  request.shape.microbatches = microbatches;
  request.shape.slices = slices;
  request.shape.chunks = def.implied_chunks.value_or(def.default_chunks);
  return build_schedule(def, request);
}

Nanos sum_of(const OpParts& op) {
  Nanos sum = 0;
  for (const OpPart& part : op.parts)
    for (std::int32_t layer = 0; layer < op.layers; ++layer) {
      EXPECT_GE(part.time(layer), 0) << part.name;
      sum += part.time(layer);
    }
  return sum;
}

Nanos time_of(const OpParts& op, const std::string& name) {
  Nanos sum = 0;
  for (const OpPart& part : op.parts)
    if (part.name == name)
      for (std::int32_t layer = 0; layer < op.layers; ++layer) sum += part.time(layer);
  return sum;
}

void expect_parts_add_up(const ModelOnDevices& on, const Schedule& schedule) {
  const ModelStep step = compute_model_step(on, schedule);
  const PartTable table = make_model_parts(on, schedule, step);
  const PartCosts costs = run_all_parts(table, schedule);
  ASSERT_EQ(table.stages.size(), static_cast<std::size_t>(schedule.stages()));
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const StageCost& cost =
        step.costs.stages[static_cast<std::size_t>(stage * schedule.shape.slices)];
    const std::pair<OpKind, Nanos> ops[] = {{OpKind::kForward, cost.forward},
                                            {OpKind::kInputGrad, cost.input_grad},
                                            {OpKind::kBackward, cost.backward}};
    for (const auto& [kind, whole] : ops) {
      EXPECT_EQ(sum_of(table.stages[static_cast<std::size_t>(stage)].of(kind)), whole);
      const PartRun* const run = costs.find(key_of(Op{stage, 0, 0, kind}));
      ASSERT_NE(run, nullptr);
      EXPECT_EQ(run->time, whole) << "in series";
    }
  }
}

// Whatever is assumed, parts in series take as long as the whole op, to the nanosecond.
TEST(ModelParts, AddUpToTheWhole) {
  for (const char* model : {"llama3-8b", "mixtral-8x7b", "deepseek-v3", "gpt3-175b"})
    for (const char* runtime :
         {"megatron", "megatron-2021", "nemo", "deepspeed", "torchtitan", "nemo-automodel"})
      for (const Recompute recompute :
           {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
        SCOPED_TRACE(std::string(model) + " under " + runtime);
        ModelOnDevices on = spread_out(on_devices(model, runtime));
        on.parts.emplace();
        on.parallel.recompute = recompute;
        expect_parts_add_up(on, build("1f1b", 4, 8));
        expect_parts_add_up(on, build("dualpipe", 2, 4));
        expect_parts_add_up(on, build("seq1f1b", 4, 8, 2));
      }
}

// One host launches both ops of a pair, so that hidden exchanges spare nothing where it is slow.
TEST(ModelParts, OfPairsTakeAtLeastTheHostsTime) {
  ModelOnDevices on = spread_out(on_devices("mixtral-8x7b"));
  on.parts = parse_model_parts("megatron");
  on.assumptions.host_layer = 1'000'000'000;
  on.assumptions.pairs_hide_exchange = true;
  const Schedule schedule = build("dualpipe", 2, 4);
  const ModelStep step = compute_model_step(on, schedule);
  const PartTable table = make_model_parts(on, schedule, step);
  const PartCosts costs = run_all_parts(table, schedule);
  ASSERT_TRUE(costs.has_pairs);
  for (const auto& [key, at] : costs.run_of) {
    if (key.second_stage < 0) continue;
    const PartRun& run = costs.runs[at];
    const Nanos host = table.of_stage(key.stage).of(key.kind).host +
                       table.of_stage(key.second_stage).of(key.second_kind).host;
    EXPECT_GT(host, 16'000'000'000) << "16 layers of both ops";
    EXPECT_GE(run.time, host);
    EXPECT_EQ(run.turns.back().end, run.time);
    for (const PartSpan& span : run.spans) EXPECT_LE(span.end, run.time);
  }
  EXPECT_GT(step.costs.stages[0].overlapped_pair.value(), 32'000'000'000);
}

// The first two layers of every stage are recomputed, and the others are not.
TEST(ModelParts, AddUpWhereSomeLayersAreRecomputed) {
  for (const char* model : {"mixtral-8x7b", "deepseek-v3"}) {
    ModelOnDevices on = spread_out(on_devices(model));
    on.parts.emplace();
    on.parallel.recompute = Recompute::kFull;
    on.parallel.recomputed = {RecomputeMethod::kBlock, 2};
    const Schedule schedule = build("1f1b", 4, 8);
    expect_parts_add_up(on, schedule);
    const PartTable table = make_model_parts(on, schedule, compute_model_step(on, schedule));
    const OpParts& backward = table.stages[1].of(OpKind::kBackward);
    const auto again = std::find_if(backward.parts.begin(), backward.parts.end(),
                                    [](const OpPart& part) { return part.name == "recompute"; });
    ASSERT_NE(again, backward.parts.end()) << model;
    EXPECT_EQ(std::count_if(again->times.begin(), again->times.end(),
                            [](Nanos time) { return time > 0; }),
              2)
        << model;
  }
}

// The whole prediction is the same where no pair interleaves its parts.
TEST(ModelParts, ChangeNoStepInSeries) {
  for (const char* name : {"1f1b", "zb-h1", "dualpipe", "1f1b-vocab", "interleaved"}) {
    const ValidSchedule schedule = require_valid(build(name, 4, 8));
    Config config;
    config.costs = ModelCosts{spread_out(on_devices("mixtral-8x7b"))};
    const Timeline whole = predict(schedule, config).timeline;
    std::get<ModelCosts>(config.costs).on.parts.emplace();
    const Prediction parts = predict(schedule, config);
    EXPECT_EQ(parts.timeline.end, whole.end) << name;
    EXPECT_GT(parts.report.parts->exposed(0), 0) << name;
  }
}

// F waits once for the tensor ranks around attention and once around the network, and twice for
// the experts; the collectives are those of the layer's times.
TEST(ModelParts, NameTheCollectivesThatOpsWaitFor) {
  ModelOnDevices on = spread_out(on_devices("mixtral-8x7b"));
  on.assumptions.iteration_graphs = 1;  // no op waits for the host as well
  on.parts.emplace();
  const Schedule schedule = build("1f1b", 4, 8);
  const PartTable table = make_model_parts(on, schedule, compute_model_step(on, schedule));
  const OpParts& forward = table.stages[1].of(OpKind::kForward);
  const double layers = forward.layers;
  EXPECT_NEAR(static_cast<double>(time_of(forward, "dispatch")),
              layers * exposed_exchange_time(on, 0) / 2, layers);
  EXPECT_GT(time_of(forward, "attn_reduce"), 0);
  EXPECT_EQ(time_of(forward, "rest"), 0);
  Nanos of_layers = 0;
  for (const char* name :
       {"context", "attn", "attn_reduce", "dispatch", "mlp", "combine", "mlp_reduce"})
    of_layers += time_of(forward, name);
  EXPECT_NEAR(static_cast<double>(of_layers), layers * estimate_layer_times(on, 0).forward, layers);
  on.parallel.tensor = 1;
  const PartTable alone = make_model_parts(on, schedule, compute_model_step(on, schedule));
  EXPECT_EQ(time_of(alone.stages[1].of(OpKind::kForward), "attn_reduce"), 0);
}

Nanos waits_of(const OpParts& op) {
  Nanos sum = 0;
  for (const OpPart& part : op.parts)
    if (part.lane != kComputeLane) sum += time_of(op, part.name);
  return sum;
}

// A pair takes at least the compute of both ops and at most as long as one after the other; what it
// hides slows the compute beside it by the SMs that it takes, no more.
TEST(ModelParts, InterleaveBetweenTheBounds) {
  for (const char* order : {"dualpipe", "megatron", "braid"})
    for (const char* model : {"mixtral-8x7b", "deepseek-v3", "llama3-8b"})
      for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
        SCOPED_TRACE(std::string(model) + " in the order " + order);
        ModelOnDevices on = spread_out(on_devices(model));
        on.parallel.recompute = recompute;
        on.parts = parse_model_parts(order);
        on.assumptions.iteration_graphs = 1;  // no host limits them
        const Schedule schedule = build("dualpipe", 4, 8);
        const PartTable table = make_model_parts(on, schedule, compute_model_step(on, schedule));
        const PartCosts costs = run_all_parts(table, schedule);
        std::size_t pairs = 0;
        for (const auto& [key, run] : costs.run_of) {
          if (key.second_stage < 0) continue;
          ++pairs;
          const OpParts& forward = table.of_stage(key.stage).of(key.kind);
          const OpParts& backward = table.of_stage(key.second_stage).of(key.second_kind);
          const Nanos both = sum_of(forward) + sum_of(backward);
          const Nanos waits = waits_of(forward) + waits_of(backward);
          const PartRun& pair = costs.runs[run];
          EXPECT_GT(pair.time, both - waits);
          EXPECT_LT(pair.time, both);
          EXPECT_EQ(pair.time, both - waits + pair.exposed() + pair.slowed());
          const double slowed = on.assumptions.collective_sms * static_cast<double>(waits);
          EXPECT_LE(static_cast<double>(pair.slowed()), slowed + 200);
        }
        EXPECT_GT(pairs, 0u);
      }
}

// Megatron's --moe-overlap marks the turns of the steady state, and nothing deadlocks.
TEST(ModelParts, PairTheTurnsOfMegatron) {
  for (std::int32_t ranks = 1; ranks <= 4; ++ranks)
    for (std::int32_t chunks = 1; chunks <= 3; ++chunks)
      for (std::int32_t microbatches = ranks; microbatches <= 3 * ranks; microbatches += ranks) {
        ScheduleRequest request;
        request.shape.ranks = ranks;
        request.shape.chunks = chunks;
        request.shape.microbatches = microbatches;
        request.moe_overlap = MoeOverlap::kPairs;
        const ValidSchedule schedule = build_schedule(find_schedule("interleaved"), request);
        for (const Overlap overlap : {Overlap::kSerial, Overlap::kAtomic, Overlap::kFused}) {
          LowerOptions options;
          options.overlap = overlap;
          EXPECT_TRUE(std::holds_alternative<Program>(lower(schedule, options)))
              << ranks << " ranks, " << chunks << " chunks, " << microbatches;
        }
      }
}

TEST(ModelParts, TakeAnOrderOfOnesOwn) {
  EXPECT_FALSE(parse_model_parts("series").pair_order);
  EXPECT_EQ(parse_model_parts("megatron").pair_order->name, "megatron");
  // 8 parts stand before a layer and 7 after it.
  EXPECT_EQ(parse_model_parts("F.attn,|,B.attn").pair_order->parts.size(), 2u + 8 + 7);
  EXPECT_EQ(parse_model_parts("F.embedding,F.attn,B.send").pair_order->parts.size(), 1u + 8 + 7);
  EXPECT_EQ(
      error_of([] { parse_model_parts("serial"); }),
      "'serial' is not an order of parts; give dualpipe, megatron, braid, series, or a list of "
      "parts");
  EXPECT_EQ(error_of([] { parse_model_parts(""); }).find("'' is not an order of parts"), 0u);
  EXPECT_TRUE(fails_with([] { parse_model_parts("F.attn,attn"); }, "'attn'"));
  EXPECT_EQ(error_of([] {
              parse_model_parts("F.atn,F.attn,B.norm");
            }).find("has F.atn, B.norm, which no op of a model has; the parts are F.gather, "),
            0u);
  EXPECT_TRUE(fails_with([] { parse_model_parts("|,F.attn"); }, "a barrier with no part before"));
}

/// Two schedules whose pairs are on all stages, the first and the last among them.
std::vector<ValidSchedule> build_paired() {
  ScheduleRequest request;
  request.shape.ranks = 4;
  request.shape.chunks = 2;
  request.shape.microbatches = 8;
  request.moe_overlap = MoeOverlap::kPairs;
  return {require_valid(build("dualpipev", 4, 8)),
          build_schedule(find_schedule("interleaved"), request)};
}

Nanos makespan_of(const ValidSchedule& schedule, const std::string& parts) {
  Config config;
  ModelOnDevices on = spread_out(on_devices("mixtral-8x7b"));
  on.parts = parse_model_parts(parts);
  config.costs = ModelCosts{std::move(on)};
  return predict(schedule, config).report.makespan;
}

// The first stage has an embedding and the last a head, which an order need not list; a listed part
// that an op lacks is passed over.
TEST(ModelParts, InterleaveInAnOrderOfOnesOwnOnAllStages) {
  const std::string layer =
      "B.combine,F.context,F.attn,F.attn_reduce,B.mlp,F.dispatch,B.mlp_w,B.dispatch,B.mlp_reduce,"
      "F.mlp,F.combine,B.attn,B.attn_w,F.mlp_reduce,B.context,B.attn_reduce";
  for (const ValidSchedule& schedule : build_paired()) {
    SCOPED_TRACE(schedule->name);
    const Nanos known = makespan_of(schedule, "megatron");
    EXPECT_EQ(makespan_of(schedule, layer), known);
    EXPECT_EQ(makespan_of(schedule, "F.gather,B.gather,F.embedding,B.head," + layer), known);
    const std::string lacking = error_of([&] { makespan_of(schedule, "F.attn,F.mlp,B.mlp"); });
    EXPECT_EQ(lacking.find("`parts`: the order of "), 0u) << lacking;
    EXPECT_NE(lacking.find("lacks F.attn_reduce, F.combine, F.context, F.dispatch, F.mlp_reduce, "),
              std::string::npos)
        << lacking;
    EXPECT_NE(lacking.find("; add them"), std::string::npos) << lacking;
  }
}

}  // namespace
}  // namespace bubblescope::tests
