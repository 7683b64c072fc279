// Prints results to stdout and messages to stderr, with control characters escaped.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace bubblescope::tools {

/// While it lives, what its thread prints is kept here instead of written, for callers that are not
/// a terminal. Captures may be nested.
class PrintCapture {
 public:
  PrintCapture();
  ~PrintCapture();
  PrintCapture(const PrintCapture&) = delete;
  PrintCapture& operator=(const PrintCapture&) = delete;

  std::string output;    ///< what would be on stdout
  std::string messages;  ///< what would be on stderr, without progress bars

 private:
  PrintCapture* outer_;
};

/// Prints results. Control characters become escapes, except the colours of our own drawings. A
/// failure to write stdout is found when it is flushed at the end.
void print_output_text(std::string_view text);

/// Prints a message, "bubblescope: ..." for a warning. Failures to write stderr are ignored, so
/// that files are written anyway.
void print_message_text(std::string_view text);

/// Prints one of our drawings likewise, however large it is.
void print_message_drawing(std::string_view text);

/// Draws the progress of a long command on a terminal, including escapes.
void draw_progress(std::string_view text);

/// The errno of the first failure to write stdout; 0: none was seen yet.
int find_output_error();

template <class... Values>
void print_output(fmt::format_string<Values...> format, Values&&... values) {
  print_output_text(fmt::format(format, std::forward<Values>(values)...));
}

template <class... Values>
void print_message(fmt::format_string<Values...> format, Values&&... values) {
  print_message_text(fmt::format(format, std::forward<Values>(values)...));
}

}  // namespace bubblescope::tools
