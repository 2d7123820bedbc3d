# SPDX-License-Identifier: Apache-2.0
# The same shop under WEBrick: modules, blocks, a template. shop.rb PORT
require 'webrick'
require 'erb'

module Taxed
  def taxed(price)
    (price * 1.19).round(2)
  end
end

class Shop
  include Taxed

  def rows
    return to_enum(:rows) unless block_given?

    (1..400).each { |i| yield({ id: i, price: i * 7 % 101 }) }
  end

  def basket(n)
    all = rows.map { |row| { id: row[:id], name: format('%08x', row[:id] * 2_654_435_761 % 4_294_967_296), price: taxed(row[:price]) } }
    all.sort { |a, b| compare(a, b) }.first(n)
  end

  def compare(a, b)
    [a[:price], a[:name]] <=> [b[:price], b[:name]]
  end
end

TEMPLATE = ERB.new("<h1>basket</h1><% rows.each do |row| %><li><%= row[:id] %>: <%= row[:name] %> <%= row[:price] %></li><% end %>\n")

def page(rows)
  TEMPLATE.result(binding)
end

server = WEBrick::HTTPServer.new(BindAddress: '127.0.0.1', Port: ARGV[0].to_i, AccessLog: [], Logger: WEBrick::Log.new(nil, 0))
server.mount_proc('/') { |_, response| response.body = page(Shop.new.basket(30)) }
trap('TERM') { server.shutdown }
server.start
