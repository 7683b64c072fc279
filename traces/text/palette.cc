// Colours stay distinct in print and for colour-blind readers, because they also differ in
// lightness.
#include "traces/text/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace bubblescope::traces {

namespace {

/// The lightening of the last chunk's colour; 1 is white.
constexpr double kLightest = 0.55;

std::uint8_t towards_white(std::uint8_t channel, double amount) {
  return static_cast<std::uint8_t>(std::lround(channel + amount * (255 - channel)));
}

constexpr int kTerminalBlack = 16;
constexpr int kTerminalWhite = 231;

}  // namespace

KindStyle style_of(OpKind kind) {
  switch (kind) {
    case OpKind::kForward:
      return {"forward", "forward", {0x3b, 0x73, 0xb9}, {26, 117}, "thread_state_runnable"};
    case OpKind::kBackward:
      return {"backward", "backward", {0x2f, 0x8f, 0x5b}, {28, 114}, "thread_state_running"};
    case OpKind::kInputGrad:
      return {
          "input gradient", "input_grad", {0x4d, 0xb0, 0x8c}, {30, 115}, "background_memory_dump"};
    case OpKind::kWeightGrad:
      return {
          "weight gradient", "weight_grad", {0xee, 0x9b, 0x3a}, {208, 222}, "thread_state_iowait"};
    case OpKind::kRecompute:
      return {"recompute", "recompute", {0x8a, 0x63, 0xb5}, {91, 183}, "detailed_memory_dump"};
    case OpKind::kSendForward:
    case OpKind::kRecvForward:
    case OpKind::kSendBackward:
    case OpKind::kRecvBackward:
    case OpKind::kWaitSendForward:
    case OpKind::kWaitSendBackward:
      return {"message", "p2p", {0x8c, 0x8c, 0x8c}, {241, 247}, "generic_work"};
    case OpKind::kEvict: return {"evict", "evict", {0x5b, 0x7f, 0x86}, {66, 109}, "olive"};
    case OpKind::kLoad: return {"load", "load", {0x9c, 0xc4, 0xc9}, {73, 152}, "rail_load"};
    case OpKind::kUnshard:
    case OpKind::kReshard:
    case OpKind::kReduceGrad:
    case OpKind::kWaitReduceGrad:
    case OpKind::kNorm:
      return {"collective", "collective", {0xb0, 0x50, 0x50}, {124, 174}, "terrible"};
    case OpKind::kOptimizer:
      return {
          "optimizer step", "optimizer", {0xc2, 0x4d, 0x8e}, {162, 212}, "vsync_highlight_color"};
    case OpKind::kIdle: return {"idle", "idle", {0xff, 0xff, 0xff}, {16, 16}, "white"};
  }
  return {};
}

char letter(OpKind kind) {
  if (occurs_in_order(kind)) return code(kind).front();
  if (is_message(kind)) return 'S';
  if (kind == OpKind::kOptimizer) return 'O';
  return 'C';
}

std::string hex(Rgb colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

Rgb ink_on(Rgb background) {
  const double luma = 0.299 * background.red + 0.587 * background.green + 0.114 * background.blue;
  return luma > 150 ? Rgb{0, 0, 0} : Rgb{255, 255, 255};
}

Rgb lighten(Rgb colour, double amount) {
  return {towards_white(colour.red, amount), towards_white(colour.green, amount),
          towards_white(colour.blue, amount)};
}

Palette::Palette(const Schedule& schedule)
    : chunk_of_stage_(bubblescope::chunk_of_stage(schedule)) {
  for (const std::int32_t chunk : chunk_of_stage_) chunks_ = std::max(chunks_, chunk + 1);
}

Rgb Palette::colour(const Op& op) const {
  const Rgb base = style_of(op.kind).colour;
  if (chunks_ == 1) return base;
  return lighten(base, kLightest * chunk(op) / (chunks_ - 1));
}

TerminalColours Palette::terminal(const Op& op) const {
  const bool light = chunk(op) % 2 == 1;
  const int background = style_of(op.kind).terminal[light ? 1 : 0];
  return {background, light || op.kind == OpKind::kWeightGrad ? kTerminalBlack : kTerminalWhite};
}

}  // namespace bubblescope::traces
