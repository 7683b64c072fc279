// Implements flags with CLI11.
#include "tools/flags/command_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "sim/ir/error.h"
#include "sim/ir/nearest_names.h"
#include "tools/print.h"
#include "tools/terminal.h"
#include "traces/text/fit_table.h"

namespace bubblescope::tools {

CommandFlag* CommandFlag::check(const InRange& range) {
  if (const auto* numbers = std::get_if<RangeLimits<int>>(&range.ends))
    option_->check(CLI::Range(numbers->min_value, numbers->max_value));
  else if (const auto* large = std::get_if<RangeLimits<std::int64_t>>(&range.ends))
    option_->check(CLI::Range(large->min_value, large->max_value));
  else if (const auto* real = std::get_if<RangeLimits<double>>(&range.ends))
    option_->check(CLI::Range(real->min_value, real->max_value));
  return this;
}

CommandFlag* CommandFlag::type_name(const std::string& name) {
  option_->type_name(name);
  return this;
}

CommandFlag* CommandFlag::required() {
  option_->required();
  return this;
}

CommandFlag* CommandFlag::delimiter(char sign) {
  option_->delimiter(sign);
  return this;
}

CommandFlag* CommandFlag::repeated() {
  option_->expected(1)->take_all();
  return this;
}

std::size_t CommandFlag::count() const { return option_->count(); }

struct CommandFlags::Parser {
  Parser(const std::string& description, const std::string& name) : app(description, name) {}
  CLI::App app;
  std::deque<CommandFlag> flags;  ///< its elements do not move when others are added
  std::map<std::string, std::string> name_of_old_name;
};

CommandFlags::CommandFlags(const std::string& description, const std::string& name)
    : parser_(std::make_unique<Parser>(description, name)) {}

CommandFlags::~CommandFlags() = default;

CommandFlag* CommandFlags::keep(CLI::Option* option) {
  return &parser_->flags.emplace_back(option);
}

namespace {

constexpr std::size_t kHelpColumn = 30;  ///< where the library's help begins to explain a flag

/// The library lets a minus sign wrap around: -1 would be the largest number.
std::string refuse_negative(const std::string& text) {
  return text.starts_with('-') ? "'" + text + "' is below 0" : std::string{};
}

/// What the library says about a flag that is given twice or lacks its value, in plain words.
std::string reword(const std::string& message) {
  if (const std::size_t at = message.find(": At Most 1 required"); at != message.npos)
    return message.substr(0, at) + " is given more than once; give it once";
  if (const std::size_t at = message.find(": 1 required "); at != message.npos)
    return message.substr(0, at) + " needs a value";
  return message;
}

}  // namespace

template <class Value>
CommandFlag* CommandFlags::add_option(const std::string& name, Value& value,
                                      const std::string& help) {
  CLI::Option* const option = parser_->app.add_option(name, value, help);
  if constexpr (std::is_same_v<Value, std::uint64_t> ||
                std::is_same_v<Value, std::optional<std::uint64_t>>)
    option->check(refuse_negative);
  return keep(option);
}

#define BUBBLESCOPE_VALUE(...)                                                                  \
  template CommandFlag* CommandFlags::add_option<__VA_ARGS__>(const std::string&, __VA_ARGS__&, \
                                                              const std::string&)
BUBBLESCOPE_VALUE(std::string);
BUBBLESCOPE_VALUE(std::optional<std::string>);
BUBBLESCOPE_VALUE(std::vector<std::string>);
BUBBLESCOPE_VALUE(std::int32_t);
BUBBLESCOPE_VALUE(std::optional<std::int32_t>);
BUBBLESCOPE_VALUE(std::vector<std::int32_t>);
BUBBLESCOPE_VALUE(std::int64_t);
BUBBLESCOPE_VALUE(std::optional<std::int64_t>);
BUBBLESCOPE_VALUE(std::uint64_t);
BUBBLESCOPE_VALUE(std::optional<std::uint64_t>);
BUBBLESCOPE_VALUE(double);
BUBBLESCOPE_VALUE(std::optional<double>);
#undef BUBBLESCOPE_VALUE

CommandFlag* CommandFlags::add_flag(const std::string& name, bool& value, const std::string& help) {
  if (!name.starts_with('!')) return keep(parser_->app.add_flag(name, value, help));
  // The library's own negated flags have a "{false}" in --help.
  const auto negate = [&value] { value = false; };
  return keep(parser_->app.add_flag_callback(name.substr(1), negate, help));
}

CommandFlag* CommandFlags::add_parsed(const std::string& name,
                                      const std::function<void(const std::string&)>& read,
                                      const std::string& help) {
  return keep(parser_->app.add_option_function<std::string>(name, read, help));
}

CommandFlag* CommandFlags::add_parsed_list(
    const std::string& name, const std::function<void(const std::vector<std::string>&)>& read,
    const std::string& help) {
  return keep(parser_->app.add_option_function<std::vector<std::string>>(name, read, help));
}

void CommandFlags::accept_old_name(const std::string& old_name, const std::string& name) {
  parser_->name_of_old_name[old_name] = name;
}

/// The word with the name that its flag has now, if it is a renamed one: "--ragged=5%".
std::string CommandFlags::current_name(const std::string& word) const {
  const std::string flag = word.substr(0, word.find('='));
  const auto renamed = parser_->name_of_old_name.find(flag);
  if (renamed == parser_->name_of_old_name.end()) return word;
  return renamed->second + word.substr(flag.size());
}

void CommandFlags::set_heading(const std::string& text) {
  parser_->app.option_defaults()->group(text);
}

std::string CommandFlags::heading() const { return parser_->app.option_defaults()->get_group(); }

void CommandFlags::footer(const std::string& text) { parser_->app.footer(text); }

std::size_t CommandFlags::count(const std::string& flag) const { return parser_->app.count(flag); }

std::vector<std::string> CommandFlags::given_under(const std::string& heading) const {
  std::vector<std::string> names;
  for (const CLI::Option* option : parser_->app.get_options())
    if (option->get_group() == heading && option->count() > 0) names.push_back(option->get_name());
  return names;
}

void CommandFlags::refuse_unknown_flag() const {
  const CLI::App& app = parser_->app;
  const std::vector<std::string> left = app.remaining();
  if (left.empty()) return;
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  const std::string word = left[0].substr(0, left[0].find('='));
  const bool is_flag = word.starts_with('-');
  throw Error((is_flag ? "no flag is called '" : "one word too many: '") + word + "'" +
              suggestion(is_flag ? nearest_names(word, known) : std::vector<std::string>{}) +
              " ('" + app.get_name() + " --help' " + (is_flag ? "shows them all)" : "explains)"));
}

bool CommandFlags::parse(const std::vector<std::string>& words) {
  CLI::App& app = parser_->app;
  app.allow_extras();
  std::vector<std::string> backwards;  // the order that CLI11 expects
  std::transform(words.rbegin(), words.rend(), std::back_inserter(backwards),
                 [this](const std::string& word) { return current_name(word); });
  try {
    app.parse(std::move(backwards));
  } catch (const CLI::CallForHelp&) {
    print_output_text(traces::fold_lines(app.help(), detect_draw_options().width, kHelpColumn));
    return false;
  } catch (const CLI::ParseError& error) {
    refuse_unknown_flag();
    std::string message = error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    throw Error(reword(message) + " ('" + app.get_name() + " --help' explains)");
  }
  refuse_unknown_flag();
  return true;
}

}  // namespace bubblescope::tools
