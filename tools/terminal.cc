// Asking the terminal.
#include "tools/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace bubblescope {

namespace {

constexpr int kDefaultWidth = 80;

}  // namespace

DrawOptions terminal_draw_options() {
  DrawOptions options;
  options.width = kDefaultWidth;
  if (isatty(STDOUT_FILENO) == 0) return options;
  const char* no_colour = std::getenv("NO_COLOR");
  options.colour = no_colour == nullptr || *no_colour == '\0';
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= kDefaultWidth / 2)
    options.width = size.ws_col;
  return options;
}

}  // namespace bubblescope
