// Colours stay distinct in print and for colour-blind readers, because they also differ in
// lightness.
#include "traces/text/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace bubblescope::traces {

namespace {

/// The lightening of the last chunk's colour; 1 is white.
constexpr double kLightest = 0.55;

std::uint8_t towards_white(std::uint8_t channel, double amount) {
  return static_cast<std::uint8_t>(std::lround(channel + amount * (255 - channel)));
}

/// Terminal colours of even chunks and of odd ones.
using TerminalTones = std::array<int, 2>;

TerminalTones terminal_tones(OpKind kind) {
  switch (kind) {
    case OpKind::kForward: return {26, 117};
    case OpKind::kBackward: return {28, 114};
    case OpKind::kInputGrad: return {30, 115};
    case OpKind::kWeightGrad: return {208, 222};
    case OpKind::kRecompute: return {91, 183};
    case OpKind::kSendForward:
    case OpKind::kRecvForward:
    case OpKind::kSendBackward:
    case OpKind::kRecvBackward:
    case OpKind::kWaitSendForward:
    case OpKind::kWaitSendBackward: return {241, 247};
    case OpKind::kEvict: return {66, 109};
    case OpKind::kLoad: return {73, 152};
    case OpKind::kUnshard:
    case OpKind::kReshard:
    case OpKind::kReduceGrad:
    case OpKind::kWaitReduceGrad:
    case OpKind::kNorm: return {124, 174};
    case OpKind::kOptimizer: return {162, 212};
    case OpKind::kIdle: return {16, 16};
  }
  return {};
}

constexpr int kTerminalBlack = 16;
constexpr int kTerminalWhite = 231;

}  // namespace

Rgb base_colour(OpKind kind) {
  switch (kind) {
    case OpKind::kForward: return {0x3b, 0x73, 0xb9};
    case OpKind::kBackward: return {0x2f, 0x8f, 0x5b};
    case OpKind::kInputGrad: return {0x4d, 0xb0, 0x8c};
    case OpKind::kWeightGrad: return {0xee, 0x9b, 0x3a};
    case OpKind::kRecompute: return {0x8a, 0x63, 0xb5};
    case OpKind::kSendForward:
    case OpKind::kRecvForward:
    case OpKind::kSendBackward:
    case OpKind::kRecvBackward:
    case OpKind::kWaitSendForward:
    case OpKind::kWaitSendBackward: return {0x8c, 0x8c, 0x8c};
    case OpKind::kEvict: return {0x5b, 0x7f, 0x86};
    case OpKind::kLoad: return {0x9c, 0xc4, 0xc9};
    case OpKind::kUnshard:
    case OpKind::kReshard:
    case OpKind::kReduceGrad:
    case OpKind::kWaitReduceGrad:
    case OpKind::kNorm: return {0xb0, 0x50, 0x50};
    case OpKind::kOptimizer: return {0xc2, 0x4d, 0x8e};
    case OpKind::kIdle: return {0xff, 0xff, 0xff};
  }
  return {};
}

char letter(OpKind kind) {
  if (occurs_in_order(kind)) return code(kind).front();
  if (is_message(kind)) return 'S';
  if (kind == OpKind::kOptimizer) return 'O';
  return 'C';
}

std::string_view meaning(OpKind kind) {
  switch (kind) {
    case OpKind::kForward: return "forward";
    case OpKind::kBackward: return "backward";
    case OpKind::kInputGrad: return "input gradient";
    case OpKind::kWeightGrad: return "weight gradient";
    case OpKind::kRecompute: return "recompute";
    case OpKind::kSendForward:
    case OpKind::kRecvForward:
    case OpKind::kSendBackward:
    case OpKind::kRecvBackward:
    case OpKind::kWaitSendForward:
    case OpKind::kWaitSendBackward: return "message";
    case OpKind::kEvict: return "evict";
    case OpKind::kLoad: return "load";
    case OpKind::kUnshard:
    case OpKind::kReshard:
    case OpKind::kReduceGrad:
    case OpKind::kWaitReduceGrad:
    case OpKind::kNorm: return "collective";
    case OpKind::kOptimizer: return "optimizer step";
    case OpKind::kIdle: return "idle";
  }
  return "";
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
  const Rgb base = base_colour(op.kind);
  if (chunks_ == 1) return base;
  return lighten(base, kLightest * chunk(op) / (chunks_ - 1));
}

TerminalColours Palette::terminal(const Op& op) const {
  const bool light = chunk(op) % 2 == 1;
  const int background = terminal_tones(op.kind)[light ? 1 : 0];
  return {background, light || op.kind == OpKind::kWeightGrad ? kTerminalBlack : kTerminalWhite};
}

}  // namespace bubblescope::traces
