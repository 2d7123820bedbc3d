# SPDX-License-Identifier: Apache-2.0
# Waits in known code, of each kind that Perl has: `perlstand.pl SCENE [FILE to require]`. It first says its frames, as caller()
# has them, as JSON: [["function", "file", line], ...], innermost first; `list` says the scenes.
# `busy` is the same, but runs there in place of waiting: `perlstand.pl busy SCENE SECONDS`.
package main;
use strict;
use warnings;
use utf8;
binmode STDOUT, ':utf8';
$| = 1;
use Time::HiRes ();

our $busy = 0;
our $once;

sub quoted {
    my ($text) = @_;
    $text =~ s/([\\"])/\\$1/g;
    return "\"$text\"";
}

# The frames of its caller, whose statement is in this file and line.
sub frames {
    my ($file, $line) = @_;
    my @out;
    my $i = 1;
    while (my @c = caller($i++)) {
        next if $c[3] eq '(eval)' && !defined $c[6] && !$c[7];    # eval {}: part of the function around it
        push @out, '[' . quoted($c[3]) . ',' . quoted($file) . ",$line]";
        ($file, $line) = @c[1, 2];
    }
    return '[' . join(',', @out, '["(main)",' . quoted($file) . ",$line]") . ']';
}

sub stand {
    my $n = 0;
    if ($busy) {
        print frames(__FILE__, __LINE__ + 1), "\n";
        my $until = Time::HiRes::time() + $busy; while (Time::HiRes::time() < $until) { $n = ($n * 7 + 1) % 1000003 for 1 .. 2000 }
        return 1;
    }
    print frames(__FILE__, __LINE__), "\n"; sysread(STDIN, my $byte, 1);
    return 1;
}

sub recursion {
    my ($n) = @_;
    return $n ? recursion($n - 1) : stand();
}

sub ping { my ($n) = @_;
    return $n ? pong($n - 1) : stand() }
sub pong { my ($n) = @_;
    return $n ? ping($n - 1) : stand() }

sub by_sort {
    my @found = sort { stand() unless $once++; $a <=> $b } 2, 1;
    return @found;
}

sub compares { stand() unless $once++; return $a cmp $b }
sub by_named_sort { my @found = sort compares 'b', 'a'; return @found }

sub by_map { return map { stand() } 1 }
sub by_grep { return grep { recursion(2) } 1 }

sub by_regex {
    (my $text = 'axb') =~ s/x/stand()/e;
    return $text;
}

sub in_eval { return eval { recursion(1) } }
sub in_text { return eval "\n\nrecursion(1);" }
sub in_loop { for my $i (1 .. 3) { while (1) { return stand() } } }

package Box;
sub new { my ($class) = @_; return bless {}, $class }
sub method { my ($self, $n) = @_; return main::recursion($n) }
sub closure { my ($self) = @_; my $n = 2; return sub { return main::recursion($n) } }
our $AUTOLOAD;
sub AUTOLOAD { return if $AUTOLOAD =~ /DESTROY/; return main::stand() }
package Ends;
sub DESTROY { main::stand() }
package Sums;
use overload '+' => sub { main::stand(); return 3 }, '""' => \&text;
sub text { return main::stand() }
package Tied;
sub TIESCALAR { return bless [] }
sub FETCH { return main::recursion(1) }
package Tëst;
sub grün { return main::recursion(1) }
package Δοκιμή;
sub ώρα { return Tëst::grün() }
package main;

*alias = \&recursion;
sub leaving { my $x = bless {}, 'Ends'; undef $x; return 1 }
sub of_tied { tie my $x, 'Tied'; my $y = $x; return $y }
sub of_signal { local $SIG{USR1} = sub { stand() }; kill USR1 => $$; return 1 }
sub of_warning { local $SIG{__WARN__} = sub { stand() }; warn "x\n"; return 1 }
sub goes_on { goto &recursion }

my %scenes = (
    plain     => \&stand,
    recursion => sub { return recursion(30) },
    deep      => sub { return recursion(200) },
    mutual    => sub { return ping(9) },
    sort      => \&by_sort,
    named_sort => \&by_named_sort,
    map       => \&by_map,
    grep      => \&by_grep,
    regex     => \&by_regex,
    eval      => \&in_eval,
    text      => \&in_text,
    loop      => \&in_loop,
    method    => sub { return Box->new->method(3) },
    closure   => sub { return Box->new->closure->() },
    autoload  => sub { return Box->new->unknown(1) },
    destroy   => \&leaving,
    overload  => sub { return bless([], 'Sums') + 1 },
    string    => sub { return 'a' . bless([], 'Sums') },
    tied      => \&of_tied,
    signal    => \&of_signal,
    warning   => \&of_warning,
    goto      => sub { return goes_on(2) },
    alias     => sub { return alias(1) },
    latin     => sub { return Δοκιμή::ώρα() },
    require   => sub { return require $ARGV[1] },
    main      => undef,
);
if ($ARGV[0] eq 'list') {
    print "$_\n" for sort keys %scenes;
    exit;
}
if ($ARGV[0] eq 'busy') {
    shift @ARGV;
    $busy = $ARGV[1];
    splice @ARGV, 1, 1;
}
if (!$scenes{$ARGV[0]}) {
    stand();
} else {
    $scenes{$ARGV[0]}->();
}
