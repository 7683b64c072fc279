// The letters and colours of op kinds, the same in every picture: F blue, B and I green, W orange,
// R purple, the optimizer step pink. A rank's further chunks (or its second pipeline's stages) are
// lighter.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope::traces {

struct Rgb {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;

  bool operator==(const Rgb&) const = default;
};

/// Returns 'F', 'B', 'I', 'W' or 'R'; 'S' for a message that occupies a rank, 'C' for a collective,
/// 'O' for the optimizer step.
char letter(OpKind kind);

/// How a kind of op looks, the same in every picture and viewer.
struct KindStyle {
  std::string_view meaning;          ///< "input gradient": for legends
  std::string_view category;         ///< "input_grad", "p2p": what viewers filter slices by
  Rgb colour;                        ///< of a rank's first chunk
  std::array<int, 2> terminal;       ///< terminal colours of even chunks and of odd ones
  std::string_view reserved_colour;  ///< of chrome://tracing, the nearest one
};

KindStyle style_of(OpKind kind);

/// Returns a text such as "#3b6fb6".
std::string hex(Rgb colour);

/// Black or white, whichever is easier to read on this background.
Rgb ink_on(Rgb background);

/// A lighter colour: 0 is the same, 1 is white.
Rgb lighten(Rgb colour, double amount);

/// Two of the terminal's 256 colours, by number.
struct TerminalColours {
  int background = 0;
  int ink = 0;
};

/// The colours of one schedule's ops.
class Palette {
 public:
  explicit Palette(const Schedule& schedule);

  /// Returns the darkest tone for chunk 0, and the lightest for the last chunk of the rank with the
  /// most chunks.
  Rgb colour(const Op& op) const;

  /// Two tones of a colour: odd chunks are lighter.
  TerminalColours terminal(const Op& op) const;

  std::int32_t chunk(const Op& op) const {
    return chunk_of_stage_[static_cast<std::size_t>(op.stage)];
  }
  std::int32_t chunks() const { return chunks_; }

 private:
  std::vector<std::int32_t> chunk_of_stage_;
  std::int32_t chunks_ = 1;
};

}  // namespace bubblescope::traces
