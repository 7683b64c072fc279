// Implements flags with CLI11.
#include "tools/flags/command_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sim/ir/error.h"
#include "sim/ir/nearest_names.h"
#include "tools/flags/framework_names.h"
#include "tools/flags/framework_words.h"
#include "tools/flags/words.h"
#include "tools/print.h"
#include "tools/terminal.h"
#include "traces/text/fit_table.h"

namespace bubblescope::tools {

struct CommandFlags::Parser {
  Parser(const std::string& description, const std::string& name) : app(description, name) {}
  CLI::App app;
  std::deque<CommandFlag> flags;  ///< its elements do not move when others are added
  std::string heading = "Options";
  std::map<std::string, std::string> name_of_old_name;
  std::vector<std::string> words;  ///< those that were parsed
};

std::vector<std::string> words_of(const std::vector<FlagWithValue>& flags) {
  std::vector<std::string> words;
  for (const FlagWithValue& given : flags) {
    words.push_back(given.flag);
    if (given.value) words.push_back(*given.value);
  }
  return words;
}

CommandFlags::CommandFlags(const std::string& description, const std::string& name)
    : parser_(std::make_unique<Parser>(description, name)) {}

CommandFlags::~CommandFlags() = default;

CommandFlag* CommandFlags::keep(std::string name, CommandFlag::Make make) {
  return &parser_->flags.emplace_back(std::move(name), parser_->heading, std::move(make));
}

namespace {

constexpr std::size_t kHelpColumn = 30;  ///< where the library's help begins to explain a flag

/// Appends the lines that continue a command, each behind a backslash: they are folded anew.
void join_continued(std::string& command, std::istream& lines) {
  for (std::string next; command.ends_with(" \\") && std::getline(lines, next);) {
    command.pop_back();
    command += next.substr(std::min(next.find_first_not_of(' '), next.size()));
  }
}

/// Folds help so that its examples can still be copied to a shell.
std::string fold_help(const std::string& help, int width) {
  constexpr int kBackslash = 2;
  std::string folded;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
    if (line.compare(first, 12, "bubblescope ") != 0) {
      folded += traces::fold_lines(line, width, kHelpColumn) + "\n";
      continue;
    }
    join_continued(line, lines);
    std::string command = traces::fold_lines(line, width - kBackslash);
    for (std::size_t at = command.find('\n'); at != std::string::npos;
         at = command.find('\n', at + 3))
      command.replace(at, 1, " \\\n");
    folded += command + "\n";
  }
  return folded;
}

/// The library lets a minus sign wrap around: -1 would be the largest number.
std::string refuse_negative(const std::string& text) {
  return text.starts_with('-') ? "'" + text + "' is below 0" : std::string{};
}

/// Returns the message about a flag with the name that was given, of all that the flag has.
template <class Same>
std::string with_given_name(const std::string& message, const std::vector<std::string>& words,
                            const Same& is_same) {
  const std::size_t end = message.find(':');
  if (end == message.npos) return message;
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (is_same(message.substr(0, end), name)) return name + message.substr(end);
  }
  return message;
}

/// The names of the flags among the words, each once.
std::vector<std::string> names_of_flags(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (name.starts_with("--") && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }
  return names;
}

/// The library's message about a flag that is given twice, lacks its value or has one that cannot
/// be read, in plain words. `is_switch` says whether a flag of that name has no other values than
/// true and false.
template <class IsSwitch>
std::string reword(const std::string& message, const IsSwitch& is_switch) {
  constexpr std::string_view kUnreadable = "Could not convert: ";
  const std::size_t sign = message.find(" = ");
  if (message.starts_with(kUnreadable) && sign != message.npos) {
    const std::string name = message.substr(kUnreadable.size(), sign - kUnreadable.size());
    const char* const values = is_switch(name) ? " is true or false, not '" : " is a number, not '";
    return name + values + message.substr(sign + 3) + "'";
  }
  if (const std::size_t at = message.find(": At Most 1 required"); at != message.npos)
    return message.substr(0, at) + " is given more than once; give it once";
  if (const std::size_t at = message.find(": 1 required "); at != message.npos)
    return message.substr(0, at) + " needs a value";
  return message;
}

}  // namespace

template <class Value>
CommandFlag* CommandFlags::add_option(std::string name, Value& value, std::string help) {
  auto make = [&value, help = std::move(help)](CLI::App& app, const std::string& plain) {
    CLI::Option* const option = app.add_option(plain, value, help);
    if constexpr (std::is_same_v<Value, std::uint64_t> ||
                  std::is_same_v<Value, std::optional<std::uint64_t>>)
      option->check(refuse_negative);
    return option;
  };
  return keep(std::move(name), std::move(make));
}

template CommandFlag* CommandFlags::add_option(std::string, std::string&, std::string);
template CommandFlag* CommandFlags::add_option(std::string, std::optional<std::string>&,
                                               std::string);
template CommandFlag* CommandFlags::add_option(std::string, std::vector<std::string>&, std::string);
template CommandFlag* CommandFlags::add_option(std::string, std::int32_t&, std::string);
template CommandFlag* CommandFlags::add_option(std::string, std::optional<std::int32_t>&,
                                               std::string);
template CommandFlag* CommandFlags::add_option(std::string, std::vector<std::int32_t>&,
                                               std::string);
template CommandFlag* CommandFlags::add_option(std::string, std::int64_t&, std::string);
template CommandFlag* CommandFlags::add_option(std::string, std::optional<std::int64_t>&,
                                               std::string);
template CommandFlag* CommandFlags::add_option(std::string, std::uint64_t&, std::string);
template CommandFlag* CommandFlags::add_option(std::string, std::optional<std::uint64_t>&,
                                               std::string);
template CommandFlag* CommandFlags::add_option(std::string, double&, std::string);
template CommandFlag* CommandFlags::add_option(std::string, std::optional<double>&, std::string);

CommandFlag* CommandFlags::add_flag(std::string name, bool& value, std::string help) {
  const bool is_negated = name.starts_with('!');
  // The library's own negated flags have a "{false}" in --help.
  if (is_negated) name.erase(0, 1);
  auto make = [is_negated, &value, help = std::move(help)](CLI::App& app,
                                                           const std::string& plain) {
    if (!is_negated) return app.add_flag(plain, value, help);
    return app.add_flag_callback(
        plain, [&value] { value = false; }, help);
  };
  CommandFlag* const flag = keep(std::move(name), std::move(make));
  flag->takes_none_ = true;
  return flag;
}

CommandFlag* CommandFlags::add_parsed(std::string name,
                                      std::function<void(const std::string&)> read,
                                      std::string help) {
  auto make = [read = std::move(read), help = std::move(help)](CLI::App& app,
                                                               const std::string& plain) {
    return app.add_option_function<std::string>(plain, read, help);
  };
  return keep(std::move(name), std::move(make));
}

CommandFlag* CommandFlags::add_parsed_list(
    std::string name, std::function<void(const std::vector<std::string>&)> read, std::string help) {
  auto make = [read = std::move(read), help = std::move(help)](CLI::App& app,
                                                               const std::string& plain) {
    return app.add_option_function<std::vector<std::string>>(plain, read, help);
  };
  return keep(std::move(name), std::move(make));
}

void CommandFlags::accept_old_name(const std::string& old_name, const std::string& name) {
  parser_->name_of_old_name[old_name] = name;
}

/// The words with the current names of renamed flags ("--ragged=5%").
std::vector<std::string> CommandFlags::renamed_words() const {
  std::vector<std::string> current;
  for (const std::string& word : parser_->words) {
    const std::string flag = word.substr(0, word.find('='));
    const auto renamed = parser_->name_of_old_name.find(flag);
    const bool is_old = renamed != parser_->name_of_old_name.end();
    current.push_back(is_old ? renamed->second + word.substr(flag.size()) : word);
  }
  return current;
}

void CommandFlags::set_heading(const std::string& text) { parser_->heading = text; }

std::string CommandFlags::heading() const { return parser_->heading; }

void CommandFlags::footer(const std::string& text) { parser_->app.footer(text); }

const CommandFlag* CommandFlags::find(std::string_view flag) const {
  for (const CommandFlag& known : parser_->flags)
    if (known.has_name(flag)) return &known;
  return nullptr;
}

std::size_t CommandFlags::count(const std::string& flag) const {
  const CommandFlag* const known = find(flag);
  return known == nullptr ? 0 : known->count();
}

void CommandFlags::hide(const std::vector<std::string>& flags) {
  for (CommandFlag& known : parser_->flags)
    for (const std::string& flag : flags)
      if (known.has_name(flag)) known.set([](CLI::Option& option) { option.group(""); });
}

const std::vector<std::string>& CommandFlags::words() const { return parser_->words; }

bool CommandFlags::knows(const std::string& flag) const { return find(flag) != nullptr; }

std::vector<std::string> CommandFlags::long_names() const {
  std::vector<std::string> names;
  for (const CommandFlag& flag : parser_->flags)
    for (std::string& name : split(flag.name_, ','))
      if (name.starts_with("--")) names.push_back(std::move(name));
  return names;
}

std::size_t CommandFlags::size() const { return parser_->flags.size(); }

std::vector<FlagWithValue> CommandFlags::given_flags(std::size_t flags) const {
  std::vector<FlagWithValue> given;
  for (std::size_t at = 0; at < flags; ++at) {
    const CommandFlag& flag = parser_->flags[at];
    if (flag.count() == 0) continue;
    const std::string name = flag.option_->get_name();
    if (flag.takes_none_) {
      if (flag.option_->results().back() != "false") given.push_back({name});
    } else {
      for (const std::string& value : flag.option_->results()) given.push_back({name, value});
    }
  }
  return given;
}

std::vector<std::string> CommandFlags::given_under(const std::string& heading) const {
  std::vector<std::string> names;
  for (const NamedFlag& given : names_as_given(*this, renamed_words()))
    if (given.flag->heading_ == heading &&
        std::find(names.begin(), names.end(), given.name) == names.end())
      names.push_back(given.name);
  return names;
}

std::string CommandFlags::name() const { return parser_->app.get_name(); }

/// Adds the flags that the words name, those that they must name, and the positional words. Adds
/// all flags if anything that looks like a flag is not the whole name of one, such as --help, -m8
/// or a mistyped name.
void CommandFlags::add_flags_to_parser(const std::vector<std::string>& words) {
  std::set<const CommandFlag*> given;
  bool all = false;
  for (const std::string& word : words) {
    if (!word.starts_with('-') || word == "-") continue;
    given.insert(find(std::string_view(word).substr(0, word.find('='))));
    all = all || given.contains(nullptr);
  }
  for (CommandFlag& flag : parser_->flags)
    if (all || flag.is_required_ || !flag.name_.starts_with('-') || given.contains(&flag))
      flag.add_to(parser_->app);
}

void CommandFlags::refuse_unknown_flag() const {
  const CLI::App& app = parser_->app;
  const std::vector<std::string> left = app.remaining();
  if (left.empty()) return;
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  const std::string word = left[0].substr(0, left[0].find('='));
  const std::string help = " ('" + app.get_name() + " --help' ";
  const bool takes_words =
      std::any_of(parser_->flags.begin(), parser_->flags.end(),
                  [](const CommandFlag& flag) { return !flag.name_.starts_with('-'); });
  if (!word.starts_with('-'))
    throw Error("one word too many: '" + word + "'; " +
                (takes_words ? "" : app.get_name() + " takes flags alone, ") +
                "lists take commas and no blanks (4,8), values no blank before their unit (10ms)" +
                help + "explains)");
  const std::vector<std::string> names = names_of_flags(left);
  if (names.size() > 1) throw Error(list_unknown_flags(names, known) + help + "shows them all)");
  std::string hint = explain_framework_flag(word, known);
  if (!hint.empty())
    hint.insert(0, "; ");
  else if (word.find('.') == word.npos)
    hint = suggestion(nearest_names(word, known));
  throw Error("no flag is called '" + word + "'" + hint + help + "shows them all)");
}

/// The library would take the next flag for the value that a flag lacks: "--svg --cap=8".
void CommandFlags::expect_values(const std::vector<std::string>& words) const {
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (!word->starts_with('-')) continue;
    const std::size_t sign = word->find('=');
    const CommandFlag* const flag = find(std::string_view(*word).substr(0, sign));
    if (flag == nullptr) continue;
    const bool is_empty = sign != std::string::npos && sign + 1 == word->size();
    if (is_empty && flag->takes_none_)
      throw Error(word->substr(0, sign) + " takes no value; leave the '=' out");
    if (flag->takes_none_) continue;
    const auto next = std::next(word);
    const bool is_last = sign == std::string::npos && next == words.end();
    const bool meets_flag = sign == std::string::npos && !is_last && next->starts_with("--");
    if (is_empty || is_last || meets_flag)
      throw Error(word->substr(0, sign) + " needs a value ('" + parser_->app.get_name() +
                  " --help' explains)");
    if (sign == std::string::npos) ++word;
  }
}

bool CommandFlags::parse(const std::vector<std::string>& words) {
  CLI::App& app = parser_->app;
  app.allow_extras();
  parser_->words = words;
  std::vector<std::string> named = read_framework_words(*this, renamed_words());
  // '-,gpipe' would be taken for a flag. A leading comma prevents that; lists skip empty parts.
  for (std::string& word : named)
    if (word.starts_with("-,")) word.insert(0, ",");
  add_flags_to_parser(named);
  expect_values(named);
  std::reverse(named.begin(), named.end());  // the order that CLI11 expects
  const auto is_same = [this](std::string_view one, std::string_view other) {
    return find(one) != nullptr && find(one) == find(other);
  };
  try {
    app.parse(std::move(named));
  } catch (const CLI::CallForHelp&) {
    print_output_text(fold_help(app.help(), detect_draw_options().width));
    return false;
  } catch (const Error& error) {
    throw Error(error.fault(), with_given_name(error.what(), words, is_same));
  } catch (const CLI::ParseError& error) {
    refuse_unknown_flag();
    std::string message = error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    const auto is_switch = [this](std::string_view name) {
      const CommandFlag* const flag = find(name);
      return flag != nullptr && flag->takes_none_;
    };
    throw Error(reword(with_given_name(message, words, is_same), is_switch) + " ('" +
                app.get_name() + " --help' explains)");
  }
  refuse_unknown_flag();
  return true;
}

}  // namespace bubblescope::tools
