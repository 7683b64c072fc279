// Writes to the two outputs of a terminal.
#include "tools/print.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <string>

#include "sim/ir/plain_text.h"

namespace bubblescope::tools {

namespace {

thread_local PrintCapture* capture = nullptr;
int output_error = 0;  // the errno of the first failed write to stdout

bool is_colour_sign(char letter) { return (letter >= '0' && letter <= '9') || letter == ';'; }

/// The length of the colour escape at the front of a text, "ESC [ numbers m"; 0 without one.
/// Drawings only use the numbers 0 to 2 and the 256 colours.
std::size_t colour_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  std::size_t end = 2;
  while (end < text.size() && is_colour_sign(text[end])) ++end;
  if (end == text.size() || text[end] != 'm') return 0;
  std::string_view numbers = text.substr(2, end - 2);
  for (const std::string_view style : {"4;", "1;"})  // underlined, bold
    if (numbers.starts_with(style)) numbers.remove_prefix(style.size());
  const bool is_ours = numbers == "0" || numbers == "2" || numbers.starts_with("48;5;");
  return is_ours ? end + 1 : 0;
}

/// While it lives, writing to a closed pipe does not end the program.
class PipeSignalDelay {
 public:
  PipeSignalDelay() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~PipeSignalDelay() {
    const timespec now{};
    while (!sigismember(&before_, SIGPIPE) && sigtimedwait(&pipe_, nullptr, &now) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  PipeSignalDelay(const PipeSignalDelay&) = delete;
  PipeSignalDelay& operator=(const PipeSignalDelay&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
};

void print_to_stderr(std::string_view text) {
  const PipeSignalDelay delay;
  std::fflush(stdout);  // where both go to one place, lines stay whole and in order
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void keep_or_print(const std::string& message) {
  if (capture != nullptr) {
    capture->messages += message;
  } else {
    print_to_stderr(message);
  }
}

}  // namespace

PrintCapture::PrintCapture() : outer_(capture) { capture = this; }

PrintCapture::~PrintCapture() { capture = outer_; }

void print_output_text(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const std::size_t colour = colour_length(text);
    plain += text.substr(0, colour);
    text.remove_prefix(colour);
    const std::size_t next = text.find('\x1b', colour == 0 ? 1 : 0);
    plain += escape_lines(text.substr(0, next));
    text.remove_prefix(std::min(next, text.size()));
  }
  if (capture != nullptr) {
    capture->output += plain;
  } else {
    const bool is_written = std::fwrite(plain.data(), 1, plain.size(), stdout) == plain.size();
    if (!is_written && output_error == 0) output_error = errno;
  }
}

int find_output_error() {
  if (std::fflush(stdout) != 0 && output_error == 0) output_error = errno;
  return output_error;
}

void print_message_text(std::string_view text) { keep_or_print(escape_message(text)); }

void print_message_drawing(std::string_view text) { keep_or_print(escape_lines(text)); }

void draw_progress(std::string_view text) { print_to_stderr(text); }

}  // namespace bubblescope::tools
