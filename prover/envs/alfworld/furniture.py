"""What stands and lies in ALFWorld's rooms: compact tables of measured shares, read once at import.

The numbers are shares and weights measured over the 3,553 solvable training games (kitchens, living rooms, bedrooms,
bathrooms) of ALFWorld 2.1.1 (Shridhar et al. 2021, arXiv:2010.03768); the types and what may hold what are those of its
PDDL domain. `households` draws from them, `expert` searches by them.
"""

import re
from typing import NamedTuple

_RECEPTACLES = """
kitchen:
    Cabinet 100 / 2 4 9 10 11 13 13 18 20 21 27 / 45 65 81 100 100 100
    CoffeeMachine 100 / 1
    CounterTop 100 / 1 1 1 2 2 2 3 3 3 4 4
    DiningTable 57 / 1 1 1 1 1 1 1 1 2 2 3
    Drawer 97 / 1 1 3 3 4 4 5 6 9 12 27 / 0 66 88 100 100 100
    Fridge 100 / 1 / 100
    GarbageCan 100 / 1
    Microwave 100 / 1 / 100
    Safe 4 / 1 / 100
    Shelf 20 / 3
    SideTable 11 / 1
    SinkBasin 100 / 1
    StoveBurner 100 / 4 4 4 4 4 4 4 4 4 4 6
    Toaster 100 / 1
living:
    ArmChair 92 / 1 1 1 1 1 1 1 2 2 2 3
    Cabinet 16 / 1 1 1 4 4 4 4 4 8 8 8 / 0 0 100 100 100 100
    CoffeeTable 83 / 1 1 1 1 1 1 1 1 2 2 2
    Desk 1 / 1
    DiningTable 48 / 1 1 1 1 1 1 1 1 1 2 2
    Drawer 78 / 1 1 2 4 4 4 4 6 7 8 21 / 75 100 100 100 100 100
    Dresser 38 / 1 1 1 1 1 1 1 1 1 1 2
    GarbageCan 100 / 1
    Ottoman 12 / 1
    Safe 1 / 1 / 100
    Shelf 37 / 1 1 2 2 4 6 8 8 8 13 14
    SideTable 82 / 1 1 1 1 2 2 2 3 3 3 5
    Sofa 100 / 1 1 1 1 1 1 1 1 1 2 2
    TVStand 35 / 1 1 1 1 1 1 1 1 1 2 2
bedroom:
    ArmChair 19 / 1 1 1 1 1 1 1 2 3 3 3
    Bed 100 / 1 1 1 1 1 1 1 1 1 2 2
    Cabinet 16 / 1 1 1 2 2 2 4 4 4 4 4 / 100
    CounterTop 3 / 1
    Desk 70 / 1 1 1 1 1 1 1 1 1 2 2
    DiningTable 13 / 1
    Drawer 96 / 2 2 2 3 4 5 5 8 10 13 17 / 0 60 87 100 100 100
    Dresser 46 / 1 1 1 1 1 1 1 1 1 2 2
    GarbageCan 100 / 1
    LaundryHamper 28 / 1
    Safe 16 / 1 / 0 0 100 100 100 100
    Shelf 68 / 1 1 1 1 2 2 5 6 7 9 14
    SideTable 66 / 1 1 1 1 1 1 1 1 2 2 2
bathroom:
    BathtubBasin 67 / 1
    Cabinet 44 / 2 3 4 4 4 4 4 4 4 5 9 / 75 100 100 100 100 100
    Cart 8 / 1
    CounterTop 86 / 1 1 1 1 1 1 1 1 1 2 2
    Drawer 58 / 1 1 2 4 4 4 6 6 8 8 8 / 0 0 100 100 100 100
    Dresser 8 / 1
    GarbageCan 100 / 1
    HandTowelHolder 100 / 1 1 1 1 1 1 2 2 2 2 4
    Shelf 25 / 1 1 1 1 1 2 2 3 3 4 4
    SideTable 6 / 1
    SinkBasin 100 / 1 1 1 1 1 1 2 2 2 2 2
    Toilet 100 / 1
    ToiletPaperHanger 100 / 1
    TowelHolder 100 / 1 1 1 1 1 1 1 2 2 2 2
"""

_OBJECTS = """
AlarmClock: bedroom 0 48 33 17 2
Apple: kitchen 0 33 31 34 1
BaseballBat: bedroom 59 38 3
BasketBall: bedroom 63 37
Blinds: kitchen 79 21 | bedroom 9 55 27 4 4
Book: kitchen 89 7 3 1 | living 74 12 8 5 1 | bedroom 0 42 32 23 3
Boots: living 80 20 | bedroom 90 10
Bowl: kitchen 0 35 34 30 1 | living 89 4 4 2 1 | bedroom 55 27 13 5 1
Box: living 0 69 25 5 | bedroom 53 47 1
Bread: kitchen 0 55 32 12 1
ButterKnife: kitchen 3 35 35 26 1
CD: bedroom 0 32 29 36 3
Candle: living 91 2 2 6 | bathroom 0 33 32 33 3
CellPhone: kitchen 89 4 4 3 | living 79 8 7 6 1 | bedroom 0 31 34 32 3
Chair: kitchen 16 56 23 0 0 5 | living 30 18 7 6 14 5 13 1 6 | bedroom 21 59 17 3
Cloth: bedroom 81 6 9 3 | bathroom 0 37 33 29 2
CreditCard: kitchen 91 3 3 4 | living 0 27 33 37 3 | bedroom 0 32 34 34 1
Cup: kitchen 0 35 31 31 2
Curtains: kitchen 93 7 | living 65 27 2 6 | bedroom 93 3 4
DeskLamp: living 75 25 | bedroom 29 67 4
DishSponge: kitchen 0 33 33 34 1 | bathroom 76 6 8 8 2
Egg: kitchen 0 32 35 32 1
FloorLamp: living 0 100 | bathroom 92 0 8
Footstool: bedroom 96 4 | bathroom 95 5
Fork: kitchen 0 34 33 33 1
Glassbottle: kitchen 76 8 8 8 1
HandTowel: bathroom 0 82 18 1 1
HousePlant: kitchen 64 33 3 | living 0 94 6 | bedroom 73 27 | bathroom 96 4
Kettle: kitchen 48 23 19 10 1
KeyChain: living 0 33 33 32 2 | bedroom 0 31 33 34 1
Knife: kitchen 0 35 34 31 1
Ladle: kitchen 65 11 14 10 1
Laptop: living 0 66 27 6 1 | bedroom 0 51 35 13 1
LaundryHamperLid: bedroom 72 28
Lettuce: kitchen 0 42 35 23 1
LightSwitch: kitchen 0 100 | living 0 100 | bedroom 0 100 | bathroom 0 100
Mirror: kitchen 91 9 | living 90 10 | bedroom 0 100 | bathroom 0 96 4
Mug: kitchen 0 36 35 27 2 | bedroom 49 20 17 14
Newspaper: living 38 24 21 15 3
Painting: living 0 41 39 11 8 | bedroom 58 26 10 6 | bathroom 95 5
Pan: kitchen 0 69 26 5
PaperTowelRoll: kitchen 65 35 | bathroom 84 16
Pen: kitchen 94 2 2 2 | living 80 6 7 6 1 | bedroom 0 28 35 36 1
Pencil: kitchen 93 3 3 1 | living 83 6 5 5 1 | bedroom 0 33 34 31 1
PepperShaker: kitchen 0 29 33 37 1
Pillow: living 0 87 12 1 | bedroom 0 42 47 10 1
Plate: kitchen 0 41 33 24 1 | living 65 16 14 5
Plunger: bathroom 0 100
Poster: bedroom 76 17 3 0 3
Pot: kitchen 0 53 38 10
Potato: kitchen 0 36 32 30 1
RemoteControl: living 0 31 33 32 4 | bedroom 88 4 4 4
SaltShaker: kitchen 0 35 33 31 1
ScrubBrush: bathroom 0 100
ShowerDoor: bathroom 42 58
ShowerGlass: bathroom 58 42
SoapBar: bathroom 0 34 29 32 5
SoapBottle: kitchen 0 35 34 31 | bathroom 0 34 36 28 3
Spatula: kitchen 0 35 35 29 1
Spoon: kitchen 0 32 34 33 1
SprayBottle: kitchen 93 2 3 2 | bathroom 0 36 30 32 2
Statue: kitchen 85 6 8 2 | living 4 23 38 31 1 0 0 4 | bedroom 85 9 4 2
StoveKnob: kitchen 0 0 0 0 96 0 4
TeddyBear: bedroom 65 35
Television: living 0 100 | bedroom 88 12
TennisRacket: bedroom 60 40
TissueBox: living 66 9 12 12 1 | bedroom 86 6 5 3 1 | bathroom 75 11 8 6 1
ToiletPaper: bathroom 0 1 67 31 2
Tomato: kitchen 0 34 32 33 1
Towel: bathroom 0 86 14
Vase: kitchen 85 0 7 8 | living 44 10 14 18 10 0 4 | bedroom 94 1 3 2 1
Watch: living 51 12 19 18 1 | bedroom 93 2 3 2 1
WateringCan: living 50 46 2 1
Window: kitchen 11 59 26 4 | living 4 14 44 23 6 0 4 5 1 | bedroom 0 60 31 4 4 | bathroom 34 46 16 0 5
WineBottle: kitchen 58 15 13 14 1
"""

_PLACES = """
AlarmClock: DiningTable 307 CounterTop 272 Desk 145 Dresser 125 SideTable 92 Shelf 58
Apple: DiningTable 222 Fridge 195 SideTable 168 CounterTop 131 Microwave 103 GarbageCan 99 SinkBasin 73 - 9
Book: CounterTop 222 Bed 198 CoffeeTable 116 Desk 112 DiningTable 95 Dresser 66 Sofa 60 ArmChair 39 Cabinet 30
    SideTable 22 Drawer 18 TVStand 16 Shelf 7
Bowl: DiningTable 172 Desk 162 Fridge 134 TVStand 109 CoffeeTable 107 CounterTop 91 Cabinet 67 Dresser 55 Shelf 46
    SinkBasin 21 Microwave 18 SideTable 16
Box: DiningTable 318 - 165 CoffeeTable 150 Sofa 131 TVStand 48 Desk 40 Cabinet 37 Ottoman 32 SideTable 26 Shelf 22
    Dresser 16 ArmChair 15
Bread: DiningTable 554 CounterTop 293 Fridge 97 SideTable 49 GarbageCan 4
ButterKnife: DiningTable 401 CounterTop 305 SideTable 198 SinkBasin 44 Drawer 29 - 23
CD: DiningTable 311 Dresser 168 Desk 129 SideTable 89 - 83 Drawer 66 ArmChair 45 Cabinet 41 GarbageCan 40 Shelf 27
Candle: SideTable 149 CounterTop 124 Toilet 108 CoffeeTable 100 Cart 85 DiningTable 78 TVStand 77 Shelf 76 Dresser
    71 Cabinet 55 Drawer 41 - 37
CellPhone: Ottoman 120 DiningTable 104 CoffeeTable 99 Bed 99 Dresser 90 Desk 86 TVStand 85 Sofa 68 CounterTop 67
    ArmChair 50 SideTable 50 Safe 29 Drawer 28 Shelf 22
Cloth: BathtubBasin 332 Cabinet 185 CounterTop 125 Cart 122 - 81 SinkBasin 41 Drawer 38 Dresser 34 Toilet 20 Shelf
    19
CreditCard: TVStand 121 Sofa 111 DiningTable 106 Dresser 105 CoffeeTable 101 CounterTop 81 Desk 79 SideTable 69
    ArmChair 69 Ottoman 61 Drawer 48 Shelf 47
Cup: DiningTable 229 Fridge 190 SideTable 171 CounterTop 128 SinkBasin 84 Microwave 65 Cabinet 59 Shelf 54 - 19
Curtains: - 933 SideTable 67
DeskLamp: SideTable 417 Desk 231 Dresser 196 CoffeeTable 119 Shelf 38
DishSponge: DiningTable 180 CounterTop 150 BathtubBasin 138 Cart 89 Drawer 84 Shelf 72 SinkBasin 63 Cabinet 58
    SideTable 53 Toilet 49 GarbageCan 45 - 20
Egg: Fridge 213 DiningTable 174 SideTable 138 CounterTop 134 SinkBasin 109 GarbageCan 106 Microwave 100 - 26
FloorLamp: - 673 SinkBasin 327
Fork: DiningTable 389 CounterTop 259 SideTable 147 Drawer 88 SinkBasin 76 - 40
Glassbottle: DiningTable 340 CounterTop 188 SinkBasin 107 Fridge 101 Cabinet 93 GarbageCan 82 Shelf 80 - 9
HandTowel: HandTowelHolder 950 CounterTop 50
HousePlant: CounterTop 458 DiningTable 174 SideTable 68 Dresser 68 - 65 CoffeeTable 55 Desk 47 Shelf 29 TVStand 26
    Cabinet 10
Kettle: StoveBurner 317 DiningTable 272 CounterTop 250 Cabinet 108 SinkBasin 25 - 14 Shelf 14
KeyChain: Dresser 122 CoffeeTable 104 Desk 101 TVStand 94 DiningTable 90 SideTable 83 Safe 75 Ottoman 59 - 58 Drawer
    53 Sofa 52 Shelf 45 ArmChair 43 CounterTop 13 Cabinet 8
Knife: DiningTable 441 CounterTop 298 Drawer 86 SideTable 78 - 52 SinkBasin 44
Ladle: DiningTable 423 CounterTop 330 Drawer 91 Cabinet 84 - 48 SinkBasin 24
Laptop: Bed 379 CounterTop 188 Desk 141 DiningTable 88 CoffeeTable 51 Sofa 46 Dresser 42 TVStand 24 Ottoman 22
    ArmChair 10 SideTable 9
Lettuce: DiningTable 449 CounterTop 198 Fridge 168 SideTable 121 SinkBasin 37 - 19 GarbageCan 7
Mirror: - 866 CounterTop 96 Dresser 38
Mug: Desk 167 CoffeeMachine 142 DiningTable 123 Fridge 112 Dresser 92 SideTable 74 CounterTop 73 Microwave 60
    SinkBasin 48 Shelf 44 Cabinet 36 - 29
Newspaper: DiningTable 215 Dresser 175 CoffeeTable 130 Sofa 112 Ottoman 91 Shelf 87 SideTable 69 TVStand 65 ArmChair
    45 Drawer 7
Pan: StoveBurner 381 CounterTop 346 DiningTable 147 Fridge 81 Cabinet 40
PaperTowelRoll: DiningTable 281 CounterTop 197 Toilet 121 Cart 113 Shelf 108 SideTable 86 GarbageCan 79 - 16
Pen: DiningTable 201 CoffeeTable 182 Desk 145 Dresser 139 TVStand 86 CounterTop 81 SideTable 75 Shelf 49 Drawer 31
    GarbageCan 9
Pencil: DiningTable 170 CoffeeTable 167 Desk 142 Dresser 121 SideTable 115 TVStand 82 CounterTop 72 Shelf 65 Drawer
    40 GarbageCan 25
PepperShaker: DiningTable 297 SideTable 227 CounterTop 212 Shelf 99 Cabinet 96 Drawer 69
Pillow: Bed 872 Sofa 102 ArmChair 25
Plate: DiningTable 272 CounterTop 183 Cabinet 101 CoffeeTable 100 Fridge 81 TVStand 62 - 58 Shelf 53 SideTable 33
    Dresser 30 SinkBasin 21 Microwave 5
Pot: StoveBurner 567 CounterTop 169 DiningTable 131 Fridge 81 Shelf 20 Cabinet 18 SinkBasin 9 - 4
Potato: DiningTable 245 Fridge 223 CounterTop 162 SideTable 117 SinkBasin 93 Microwave 87 GarbageCan 54 - 19
RemoteControl: CounterTop 175 CoffeeTable 132 TVStand 110 DiningTable 103 Dresser 101 Desk 87 Sofa 82 Ottoman 56
    SideTable 51 - 33 ArmChair 33 Drawer 21 Shelf 15
SaltShaker: DiningTable 312 SideTable 237 CounterTop 214 Cabinet 89 Shelf 84 Drawer 63
ShowerGlass: - 924 CounterTop 76
SoapBar: SideTable 166 CounterTop 129 Cart 128 BathtubBasin 115 Toilet 92 Cabinet 83 Shelf 75 SinkBasin 73 Drawer 57
    - 42 GarbageCan 40
SoapBottle: DiningTable 260 Dresser 153 CounterTop 141 Shelf 90 Toilet 85 SideTable 74 Cabinet 64 GarbageCan 55 Cart
    49 - 24 Drawer 5
Spatula: DiningTable 447 CounterTop 295 Drawer 95 SinkBasin 84 SideTable 57 - 21
Spoon: DiningTable 357 CounterTop 224 SideTable 175 Drawer 113 SinkBasin 97 - 35
SprayBottle: DiningTable 222 Cart 198 CounterTop 116 SideTable 113 Dresser 90 Toilet 86 Shelf 76 Cabinet 63
    GarbageCan 36
Statue: DiningTable 160 CounterTop 152 Desk 139 TVStand 133 CoffeeTable 131 Dresser 104 Shelf 101 SideTable 75 - 6
TeddyBear: Bed 737 - 263
Television: TVStand 633 Dresser 308 - 45 CoffeeTable 12
TissueBox: CoffeeTable 219 Desk 177 DiningTable 146 TVStand 125 CounterTop 74 Shelf 66 SideTable 55 Cart 46 Dresser
    36 Cabinet 30 Drawer 20 Toilet 4
ToiletPaper: Dresser 150 CounterTop 131 Toilet 118 Cart 113 - 98 Shelf 86 SideTable 78 Cabinet 68 ToiletPaperHanger
    60 Drawer 49 GarbageCan 48
Tomato: DiningTable 297 Fridge 267 CounterTop 159 SideTable 142 GarbageCan 73 SinkBasin 53 - 9
Towel: TowelHolder 968 CounterTop 32
Vase: Dresser 196 CounterTop 150 Desk 140 Shelf 128 DiningTable 98 CoffeeTable 98 TVStand 70 Cabinet 58 SideTable 45
    - 19
Watch: Desk 214 DiningTable 154 TVStand 150 Dresser 147 CoffeeTable 131 SideTable 87 Drawer 78 Shelf 40
WateringCan: - 602 Shelf 254 CoffeeTable 128 SideTable 15
Window: - 930 CounterTop 32 Dresser 21 Shelf 17
WineBottle: DiningTable 436 CounterTop 305 GarbageCan 99 Cabinet 81 Shelf 56 Fridge 16 SideTable 6
"""

_CONTAINS = """
ArmChair: Book Box CellPhone Cloth CreditCard KeyChain Laptop Newspaper Pillow RemoteControl
BathtubBasin: Cloth DishSponge HandTowel SoapBar
Bed: BaseballBat BasketBall Book CellPhone Laptop Pillow TennisRacket
Cabinet: Book Bowl Box CD Candle Cloth Cup DishSponge Glassbottle HandTowel Kettle Ladle Mug Newspaper Pan
    PepperShaker Plate Plunger Pot SaltShaker SoapBar SoapBottle SprayBottle TissueBox ToiletPaper Vase WateringCan
    WineBottle
Cart: Candle Cloth DishSponge HandTowel Plunger SoapBar SoapBottle SprayBottle TissueBox ToiletPaper
CoffeeMachine: Mug
CoffeeTable: Book Bowl Box Candle CellPhone CreditCard KeyChain Laptop Newspaper Pen Pencil Plate RemoteControl
    Statue TissueBox Vase Watch WateringCan
CounterTop: AlarmClock Apple Book Bowl Bread ButterKnife CD Candle CellPhone Cloth CreditCard Cup DishSponge Egg
    Fork Glassbottle HandTowel Kettle KeyChain Knife Ladle Laptop Lettuce Mug Pan Pen Pencil PepperShaker Plate Pot
    Potato RemoteControl SaltShaker SoapBar SoapBottle Spatula Spoon SprayBottle Statue TissueBox ToiletPaper Tomato
    Vase WineBottle
Desk: AlarmClock BasketBall Book Bowl Box CD CellPhone Cloth CreditCard KeyChain Laptop Mug Pen Pencil RemoteControl
    Statue TennisRacket TissueBox Vase Watch WateringCan
DiningTable: AlarmClock Apple BaseballBat BasketBall Book Bowl Box Bread ButterKnife CD Candle CellPhone Cloth
    CreditCard Cup DishSponge Egg Fork Glassbottle Kettle KeyChain Knife Ladle Laptop Lettuce Mug Newspaper Pan Pen
    Pencil PepperShaker Plate Pot Potato RemoteControl SaltShaker SoapBottle Spatula Spoon SprayBottle Statue
    TennisRacket TissueBox Tomato Vase Watch WateringCan WineBottle
Drawer: Book ButterKnife CD Candle CellPhone Cloth CreditCard DishSponge Fork HandTowel KeyChain Knife Ladle
    Newspaper Pen Pencil PepperShaker RemoteControl SaltShaker SoapBar SoapBottle Spatula Spoon SprayBottle
    TissueBox ToiletPaper Watch WateringCan
Dresser: AlarmClock BasketBall Book Bowl Box CD Candle CellPhone Cloth CreditCard KeyChain Laptop Mug Newspaper Pen
    Pencil Plate RemoteControl SprayBottle Statue TennisRacket TissueBox ToiletPaper Vase Watch WateringCan
Fridge: Apple Bowl Bread Cup Egg Glassbottle Lettuce Mug Pan Plate Pot Potato Tomato WineBottle
GarbageCan: Apple Bread CD Cloth DishSponge Egg HandTowel Lettuce Newspaper Pen Pencil Potato SoapBar SoapBottle
    SprayBottle TissueBox ToiletPaper Tomato WineBottle
HandTowelHolder: HandTowel
LaundryHamper: Cloth
Microwave: Apple Bowl Bread Cup Egg Glassbottle Mug Plate Potato Tomato
Ottoman: Book Box CellPhone CreditCard KeyChain Laptop Newspaper Pillow RemoteControl
Safe: CD CellPhone CreditCard KeyChain Statue Vase Watch
Shelf: AlarmClock Book Bowl Box CD Candle CellPhone Cloth CreditCard Cup DishSponge Glassbottle HandTowel Kettle
    KeyChain Mug Newspaper Pen Pencil PepperShaker Plate Pot RemoteControl SaltShaker SoapBar SoapBottle SprayBottle
    Statue TissueBox ToiletPaper Vase Watch WateringCan WineBottle
SideTable: AlarmClock Apple BaseballBat BasketBall Book Bowl Box Bread ButterKnife CD Candle CellPhone Cloth
    CreditCard Cup DishSponge Egg Fork HandTowel Kettle KeyChain Knife Laptop Lettuce Mug Newspaper Pan Pen Pencil
    PepperShaker Plate Pot Potato RemoteControl SaltShaker SoapBar SoapBottle Spatula Spoon SprayBottle Statue
    TennisRacket TissueBox ToiletPaper Tomato Vase Watch WateringCan WineBottle
SinkBasin: Apple Bowl ButterKnife Cloth Cup DishSponge Egg Fork Glassbottle HandTowel Kettle Knife Ladle Lettuce Mug
    Pan Plate Pot Potato SoapBar Spatula Spoon Tomato
Sofa: Book Box CellPhone CreditCard KeyChain Laptop Newspaper Pillow RemoteControl
StoveBurner: Kettle Pan Pot
TVStand: TissueBox
Toilet: Candle Cloth DishSponge HandTowel SoapBar SoapBottle SprayBottle TissueBox ToiletPaper
ToiletPaperHanger: ToiletPaper
TowelHolder: Towel
"""

_GOALS = """
living-light 51: Newspaper 14 Box 9 Pillow 8 Statue 5 TissueBox 4 Watch 3 Laptop 3 Plate 3 Vase 2
bedroom-light 257: AlarmClock 41 Pillow 39 CD 33 Book 30 Pencil 23 Pen 18 Bowl 17 Laptop 17 CellPhone 9 TissueBox 6
    Statue 6 CreditCard 5 Mug 4 KeyChain 4 Watch 3 Vase 2
kitchen-place 79: PepperShaker 12 Kettle 9 Glassbottle 9 Tomato 8 ButterKnife 6 Pan 5 WineBottle 5 Egg 4 Bread 3
    SaltShaker 3 Potato 3 DishSponge 3 Bowl 3 Fork 2 Lettuce 2 SoapBottle 1 Knife 1 / Microwave 15 DiningTable 12
    Drawer 10 CounterTop 9 Shelf 8 Cabinet 8 Fridge 7 SideTable 6 StoveBurner 3 GarbageCan 1
living-place 210: RemoteControl 30 KeyChain 26 Book 19 CreditCard 19 Statue 19 Box 19 Newspaper 17 Laptop 15 Pillow
    15 Watch 10 Vase 10 TissueBox 6 Plate 3 Bowl 2 / ArmChair 56 Sofa 53 CoffeeTable 43 Ottoman 20 SideTable 12
    Dresser 11 Drawer 5 Safe 3 GarbageCan 3 Shelf 2 DiningTable 2
bedroom-place 237: CellPhone 51 CD 30 Book 28 KeyChain 26 Pencil 24 AlarmClock 22 Pen 20 CreditCard 14 Laptop 6
    TissueBox 3 Mug 3 RemoteControl 3 Statue 3 Pillow 2 Watch 2 / Desk 57 Shelf 40 SideTable 33 Dresser 32 Bed 19
    Safe 15 ArmChair 15 DiningTable 13 Drawer 8 Cabinet 3 GarbageCan 2
bathroom-place 264: ToiletPaper 57 SprayBottle 50 SoapBottle 50 Candle 49 HandTowel 29 Cloth 10 TissueBox 7
    DishSponge 6 SoapBar 6 / Toilet 89 GarbageCan 47 ToiletPaperHanger 42 CounterTop 26 Cabinet 22 Drawer 16 Cart 12
    SideTable 6 Dresser 2 Shelf 2
kitchen-clean 501: Kettle 47 Ladle 38 Knife 33 Mug 32 Lettuce 31 Spatula 29 Pan 28 Bowl 26 ButterKnife 26 Tomato 26
    Spoon 26 Potato 25 Apple 25 Egg 23 Fork 23 Plate 22 Cup 20 Pot 16 DishSponge 5 / DiningTable 99 CounterTop 68
    Drawer 55 Microwave 50 Fridge 40 SideTable 40 StoveBurner 37 Cabinet 37 CoffeeMachine 32 Shelf 31 GarbageCan 12
bathroom-clean 149: SoapBar 84 Cloth 47 DishSponge 18 / Toilet 32 CounterTop 28 Drawer 27 Cabinet 21 GarbageCan 19
    Cart 11 Shelf 9 Dresser 2
kitchen-cool 533: Mug 74 Pot 57 Bowl 49 Pan 46 Potato 44 Apple 44 Bread 40 Cup 40 Lettuce 37 Tomato 34 Plate 25 Egg
    25 WineBottle 18 / Microwave 97 DiningTable 93 CounterTop 89 Cabinet 64 CoffeeMachine 47 GarbageCan 46 Shelf 45
    StoveBurner 39 SideTable 13
kitchen-heat 459: Mug 102 Cup 71 Egg 70 Potato 60 Tomato 53 Apple 52 Plate 39 Bread 12 / Fridge 105 Cabinet 71
    CounterTop 66 GarbageCan 55 CoffeeMachine 55 SideTable 44 DiningTable 43 Shelf 20
kitchen-two 124: SaltShaker 25 PepperShaker 22 Cup 14 Lettuce 11 WineBottle 6 Spatula 6 Kettle 6 Spoon 5 Ladle 4 Egg
    4 Potato 4 Glassbottle 3 Pot 3 Tomato 3 Bread 3 Pan 2 Knife 2 Apple 1 / Drawer 26 Cabinet 24 Fridge 19 Shelf 12
    CounterTop 11 DiningTable 11 Microwave 11 SideTable 7 GarbageCan 3
living-two 216: RemoteControl 43 Newspaper 36 CreditCard 36 KeyChain 16 Vase 13 TissueBox 12 CellPhone 11 Statue 10
    Watch 8 Plate 5 Pillow 5 Bowl 3 Laptop 3 Book 3 Box 3 WateringCan 3 Pen 3 Pencil 3 / ArmChair 63 CoffeeTable 50
    Sofa 47 Ottoman 11 Dresser 11 Drawer 7 DiningTable 7 SideTable 6 GarbageCan 6 Shelf 5 Desk 2 Safe 1
bedroom-two 240: CellPhone 42 Book 34 CD 26 Pencil 25 Pen 25 AlarmClock 21 KeyChain 18 CreditCard 16 Laptop 8
    TissueBox 6 Bowl 6 Watch 5 Mug 5 Pillow 2 Vase 1 / Desk 53 Drawer 39 Dresser 34 Bed 31 SideTable 27 Shelf 24
    DiningTable 11 GarbageCan 8 Safe 6 ArmChair 5 Cabinet 2
bathroom-two 233: SprayBottle 58 SoapBottle 44 ToiletPaper 43 Candle 35 HandTowel 16 SoapBar 16 TissueBox 8
    DishSponge 7 Cloth 6 / Toilet 59 Cabinet 41 Drawer 40 GarbageCan 35 CounterTop 26 Cart 16 Shelf 11 Dresser 3
    SideTable 2
"""
_PROPERTIES = """
cleanable: Apple Bowl ButterKnife Cloth Cup DishSponge Egg Fork Kettle Knife Ladle Lettuce Mug Pan Plate Pot Potato
    SoapBar Spatula Spoon Tomato
heatable: Apple Bread Cup Egg Mug Plate Potato Tomato
coolable: Apple Bowl Bread Cup Egg Lettuce Mug Pan Plate Pot Potato Tomato WineBottle
sliceable: Apple Bread Egg Lettuce Potato Tomato
toggleable: DeskLamp FloorLamp
isReceptacleObject: Bowl Box Cup Mug Pan Plate Pot
fixed: Blinds Chair Curtains DeskLamp FloorLamp Footstool HousePlant LaundryHamperLid LightSwitch Mirror Painting Poster
    ShowerDoor ShowerGlass StoveKnob Television Window
"""


class Stock(NamedTuple):
    """How many receptacles of a type a room has."""

    present: float
    """Share of rooms that have any."""
    counts: tuple[int, ...]
    """Evenly spaced quantiles of their number where there are any."""
    openable: tuple[int, ...]
    """Evenly spaced quantiles of the percentage of them, in one room, that open and close."""


class Goals(NamedTuple):
    """What is asked for in a room by one type of task; weights are numbers of games."""

    weight: int
    objects: dict[str, int]
    targets: dict[str, int]
    """Receptacle types; empty for tasks that deliver nothing."""


def _entries(table: str) -> list[tuple[str, str]]:
    """The ``key: value`` entries of a table; indented lines continue the entry above."""
    joined = re.sub(r"\n {4}", " ", table.strip())
    return [(key, value) for key, _, value in (line.partition(": ") for line in joined.split("\n"))]


def _weights(text: str) -> dict[str, int]:
    words = text.split()
    return {name: int(weight) for name, weight in zip(words[::2], words[1::2], strict=True)}


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


def _receptacles(table: str) -> dict[str, dict[str, Stock]]:
    rooms: dict[str, dict[str, Stock]] = {}
    for line in table.strip().split("\n"):
        if not line.startswith(" "):
            stocks = rooms.setdefault(line.rstrip(":"), {})
            continue
        name, share, rest = line.split(maxsplit=2)
        _, counts, *openable = rest.split("/")
        stocks[name] = Stock(int(share) / 100, _numbers(counts), _numbers(openable[0]) if openable else (0,))
    return rooms


def _objects(table: str) -> dict[str, dict[str, tuple[int, ...]]]:
    rooms: dict[str, dict[str, tuple[int, ...]]] = {}
    for name, value in _entries(table):
        for part in value.split(" | "):
            room, _, shares = part.partition(" ")
            rooms.setdefault(room, {})[name] = _numbers(shares)
    return rooms


def _goals(table: str) -> dict[str, Goals]:
    goals = {}
    for key, value in _entries(table):
        kind, _, weight = key.partition(" ")
        objects, _, targets = value.partition(" / ")
        goals[kind] = Goals(int(weight), _weights(objects), _weights(targets))
    return goals


RECEPTACLES = _receptacles(_RECEPTACLES)
"""Room -> receptacle type -> how many there are."""
OBJECTS = _objects(_OBJECTS)
"""Room -> object type -> shares of rooms that have 0, 1, 2, ... of them."""
PLACES = {name: _weights(value) for name, value in _entries(_PLACES)}
"""Object type -> receptacle type that is there -> weight of lying in it; ``-`` is none, as for types left out."""
CONTAINS = {name: frozenset(value.split()) for name, value in _entries(_CONTAINS)}
"""Receptacle type -> object types that may be put into it."""
GOALS = _goals(_GOALS)
"""``room-task`` -> what is asked for."""
PROPERTIES = {name: frozenset(value.split()) for name, value in _entries(_PROPERTIES)}
"""Property of the domain -> object types that have it."""
PROPERTIES["pickupable"] = frozenset(kind for room in OBJECTS.values() for kind in room) - PROPERTIES.pop("fixed")
